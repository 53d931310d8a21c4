"""What divides the columns of a CSV, and how its decimals are written."""

import numpy as np
import pandas as pd
import pytest

from npax.data.tables import read


def write(path, table, mark, decimal):
    path.write_text(table.to_csv(index=False, sep="|", decimal=decimal).replace("|", mark))
    return path


@pytest.fixture
def table(rng):
    whole = pd.DataFrame({"year": np.arange(1990, 2020), "well": ["a", *["b,c"] * 29]})
    return whole.assign(level=10 * rng.normal(size=30), deep=rng.integers(0, 9, 30) * 1e-7)


@pytest.mark.parametrize("mark", [";", "\t", " ", "   "])
@pytest.mark.parametrize("decimal", [".", ","])
def test_other_marks_than_commas_are_read(mark, decimal, table, tmp_path):
    path = write(tmp_path / "a.csv", table, mark, decimal)
    pd.testing.assert_frame_equal(read(path), table, check_exact=True)
    path.write_text("# of wells\n\n" + path.read_text())
    pd.testing.assert_frame_equal(read(path, lambda column: column.name == "well"), table)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_names_and_cells_may_hold_commas(mark, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("depth, m|level|well\n1,5|2,25|a\n2,5|3|b, c\n".replace("|", mark))
    assert read(path).to_dict("list") == {"depth, m": [1.5, 2.5], "level": [2.25, 3.0], "well": ["a", "b, c"]}


def test_cells_may_be_in_quotes_and_of_any_length(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'x;outline;y\n"1,5";"{"0 1; " * 40_000}";"2,25"\n')
    assert read(path)[["x", "y"]].to_numpy().tolist() == [[1.5, 2.25]]


def test_decimals_that_begin_after_whole_numbers_are_seen(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;y\n1;2\n3;4\n5;6,5\n")
    assert read(path)["y"].tolist() == [2.0, 4.0, 6.5]


def test_commas_between_columns_have_decimal_points(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y\n1.5,"2,5"\n')
    assert read(path)["y"].tolist() == ["2,5"]


@pytest.mark.parametrize("text", ["x\ty\n1,250\t3\n", "x y\n1,250 3\n4 -12,000\n"])
def test_what_may_be_thousands_is_refused(text, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(
        ValueError, match=r"a.csv' cannot be read as a table: '1,250' could be a decimal comma or one of"
    ):
        read(path)
    path.write_text(text.replace("1,250", "0,250"))
    assert read(path)["x"][0] == 0.25
    path.write_text(text.replace("1,250", "1.5"))
    assert read(path)["x"][0] == 1.5

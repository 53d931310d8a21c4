import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.dates import date2num
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from scipy import integrate

from npax import plot

LON, LAT = np.arange(-179.5, 180, 10), np.arange(-89.5, 90, 10)
CENTER = float(LON.mean())


@pytest.fixture
def ax():
    return Figure().subplots()


def rendered(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int)


def test_equal_earth_keeps_areas():
    half_width, _ = zip(*(plot.equal_earth(180.0, lat) for lat in np.linspace(-90, 90, 2001)), strict=True)
    heights = plot.equal_earth(0.0, np.linspace(-90, 90, 2001))[1]
    assert 2 * integrate.trapezoid(half_width, heights) == pytest.approx(4 * np.pi, rel=1e-4)


def test_equal_earth_is_symmetric_and_centred():
    x, y = plot.equal_earth(np.array([150.0, 170.0, 160.0]), np.array([30.0, 30.0, 0.0]), center=160.0)
    assert x[0] == pytest.approx(-x[1]) and y[0] == pytest.approx(y[1])
    assert (x[2], y[2]) == (0.0, 0.0)


@pytest.mark.parametrize("frame", [0, 200])
def test_the_world_shows_the_same_field_in_any_frame(frame):
    lon = LON + frame
    values = np.cos(np.deg2rad(lon)) + np.sin(np.deg2rad(LAT))[:, None]
    figure = Figure(figsize=(4, 2))
    ax = figure.subplots()
    mesh = plot.world(ax, lon, LAT, values, limits=(-2.0, 2.0))
    assert mesh.get_array().shape == values.shape
    shuffled = np.random.default_rng(0).permutation(lon.size)
    again = plot.world(figure.add_subplot(), lon[shuffled], LAT, values[:, shuffled], limits=(-2.0, 2.0))
    np.testing.assert_array_equal(mesh.get_array(), again.get_array())


def test_the_world_is_drawn_with_land_over_sea():
    figure = Figure(figsize=(8, 4), dpi=100)
    ax = figure.add_axes((0, 0, 1, 1))
    plot.world(ax, LON, LAT, np.zeros((LAT.size, LON.size)))
    pixels = rendered(figure)

    def color(lon, lat):
        x, y = ax.transData.transform(np.ravel(plot.equal_earth(float(lon), float(lat), CENTER)))
        return pixels[-1 - round(y), round(x)]

    np.testing.assert_array_equal(color(20, 15), [0xD9, 0xD6, 0xD0])  # Chad
    np.testing.assert_array_equal(color(-130, -25), color(-20, -25))  # two oceans
    assert np.abs(color(-130, -25) - color(20, 15)).max() > 50


def test_where_the_coasts_alone_are_drawn_the_field_is_seen_on_land():
    values = np.where(np.abs(LAT[:, None] - 15) < 20, 1.0, 0.0) + 0.0 * LON  # a band over Africa and the Atlantic
    figure = plot.mean_and_std(LON, LAT, values, values, coords="latlon", land=False)
    pixels, ax = rendered(figure), figure.axes[0]
    chad, atlantic = (np.ravel(plot.equal_earth(lon, 15.0, CENTER)) for lon in (20.0, -30.0))
    (x0, y0), (x1, y1) = np.rint(ax.transData.transform([chad, atlantic])).astype(int)
    np.testing.assert_array_equal(pixels[-1 - y0, x0], pixels[-1 - y1, x1])


@pytest.mark.parametrize(("level", "label"), [(0.95, "95% interval"), (0.995, "99.5% interval")])
def test_intervals_are_labelled_by_their_level(level, label, ax):
    plot.posterior(ax, [0.0, 1.0], [0.0, 1.0], [1.0, 1.0], level=level)
    assert label in ax.get_legend_handles_labels()[1]


def test_missing_values_stay_empty(ax):
    values = np.ones((LAT.size, LON.size))
    values[2, 3] = np.nan
    assert plot.field(ax, LON, LAT, values).get_array().mask.sum() == 1


def test_masked_values_are_missing(ax):
    x, y = np.arange(4.0), np.arange(3.0)
    values = np.ma.masked_equal(np.arange(12.0).reshape(3, 4), 5)
    values.data[1, 1] = 1e20
    mesh = plot.field(ax, x, y, values)
    assert mesh.get_array().mask.sum() == 1 and mesh.get_clim()[1] < 12
    assert plot.points(ax, x, x, np.ma.masked_greater([0.0, 1.0, 2.0, 1e20], 3)).get_clim()[1] < 3


@pytest.mark.parametrize("draw", ["field", "points", "posterior", "samples"])
def test_dates_are_dates_on_the_axis(draw, ax):
    when, ones = np.datetime64("2020-01-01") + 30 * np.arange(6), np.ones(6)
    match draw:
        case "field":
            plot.field(ax, when, np.arange(3.0), np.ones((3, 6)))
        case "points":
            plot.points(ax, when, ones, ones)
        case "posterior":
            plot.posterior(ax, when, ones, ones, context=(when, ones))
        case "samples":
            plot.samples(ax, when, np.ones((2, 6)))
    rendered(ax.figure)
    written = [label.get_text() for label in (*ax.get_xticklabels(), ax.xaxis.get_offset_text())]
    assert any("2020" in text for text in written) and "Mar" in written


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_dates_of_other_calendars_are_dates(calendar, ax):
    dates = xr.date_range("2001-02-28", periods=4, freq="12h", calendar=calendar, use_cftime=True).to_numpy()
    plot.posterior(ax, dates, np.zeros(4), np.ones(4))
    first = date2num(np.datetime64("2001-02-28" if calendar == "noleap" else "2001-02-27"))  # of months of 30 days
    assert np.allclose(ax.lines[0].get_xdata(), first + 0.5 * np.arange(4))


def test_lengths_of_time_are_in_days(ax):
    plot.posterior(ax, np.arange(3) * np.timedelta64(12, "h"), np.ones(3), np.ones(3))
    assert ax.get_xlim() == (0.0, 1.0)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_dates_of_a_time_zone_are_dates(zone, ax):
    naive = pd.date_range("2020-01-01", periods=5)
    zoned = naive.tz_localize("UTC").tz_convert(zone)
    plot.posterior(ax, zoned, np.arange(5.0), np.ones(5), context=(list(zoned.to_pydatetime()), np.zeros(5)))
    assert np.allclose(ax.get_xlim(), date2num([naive[0], naive[-1]]))


def test_a_field_of_xarray_may_have_its_dimensions_in_any_order(ax):
    values = xr.DataArray(np.arange(9.0).reshape(3, 3), {"lon": [0, 1, 2], "lat": [50, 51, 52]}, ("lon", "lat"))
    drawn = [plot.field(ax, v.lon, v.lat, v).get_array() for v in (values, values.transpose("lat", "lon"))]
    assert np.array_equal(*drawn) and np.array_equal(drawn[0].ravel()[:3], [0, 3, 6])


def test_maps_of_more_than_half_the_earth_go_on_across_the_date_line():
    """Of the Pacific, as files from -180 to 180 have it: no cell is stretched over the other half."""
    lon, lat = np.r_[np.arange(-180, -70, 5.0), np.arange(75, 180, 5.0)], np.arange(-60, 61, 10.0)
    figure = plot.mean_and_std(lon, lat, *(np.ones((lat.size, lon.size)),) * 2, coords="latlon")
    (mesh,) = [c for c in figure.axes[0].collections if isinstance(c, QuadMesh)]
    equator = np.asarray(mesh.get_coordinates())[lat.size // 2, :, 0]
    assert np.ptp(np.diff(equator)) < 1e-6 * np.ptp(equator)


def test_observations_beyond_the_date_line_stand_on_their_map():
    axes = Figure().subplots(1, 4)
    lon, lat, field = np.arange(170.0, 191), np.arange(-5.0, 6), np.ones((11, 21))
    seen = np.array([[175.0, 0.0], [-175.0, 1.0], [-172.0, 2.0]]), np.ones(3)
    plot.task_panels(axes, lon, lat, field, field, field, seen, coords="latlon")
    dots = next(c for c in axes[0].collections if len(c.get_offsets()) == 3).get_offsets()[:, 0]
    assert dots.tolist() == [175, 185, 188] and axes[0].get_xlim() == axes[3].get_xlim()


@pytest.mark.parametrize("lon", [np.r_[350:360, 0:10], np.r_[170:181, -179:-169]])
def test_grids_whose_longitudes_begin_anew_are_regions(lon):
    """Two cells once covered the rest of the globe."""
    values = np.arange(float(len(lon)))[None] * np.ones((4, 1))
    figure = plot.mean_and_std(lon, np.arange(4.0), values, values, coords="latlon")
    for ax in figure.axes[:2]:
        low, high = ax.get_xlim()
        assert high - low == pytest.approx(len(lon)) and low == lon[0] - 0.5
        assert np.array_equal(ax.collections[0].get_array().ravel()[: len(lon)], values[0])


def test_field_sorts_its_axes(ax):
    x, y = np.arange(3.0), np.arange(2.0)
    values = np.arange(6.0).reshape(2, 3)
    upright = plot.field(ax, x, y, values).get_array()
    np.testing.assert_array_equal(plot.field(ax, x, y[::-1], values[::-1]).get_array(), upright)


def test_a_curve_has_its_band_and_dots(ax):
    x = np.array([2.0, 0.0, 1.0])
    plot.posterior(ax, x, 2 * x, np.ones(3), context=([0.5], [1.0]), truth=x)
    mean, truth, dots = ax.lines
    np.testing.assert_array_equal(mean.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(mean.get_ydata(), [0, 2, 4])
    np.testing.assert_array_equal(truth.get_ydata(), [0, 1, 2])
    np.testing.assert_array_equal(dots.get_xydata(), [[0.5, 1.0]])
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(-1.96, abs=1e-3) and band[:, 1].max() == pytest.approx(5.96, abs=1e-3)


@pytest.mark.parametrize("coords", ["planar", "latlon"])
def test_two_panels(coords):
    values = np.random.default_rng(0).normal(size=(4, 5))
    x, y = np.linspace(0, 4, 5), np.linspace(40, 43, 4)
    pixels = rendered(plot.mean_and_std(x, y, values, np.abs(values), coords=coords, title="t", name="n", units="K"))
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    dots = plot.scattered(x, x, x, x + 1, coords=coords)
    assert len(dots.axes) == 4 and [ax.get_xlabel() for ax in dots.axes[2:]] == ["mean", "standard deviation"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_probabilities_are_further_panels_from_0_to_1(number):
    x, y, values = np.arange(5.0), np.arange(4.0), np.random.default_rng(0).uniform(0.2, 0.6, (4, 5))
    labels = [f"above {i}" for i in range(number)]
    for figure in (
        plot.mean_and_std(x, y, values, values, probabilities=dict.fromkeys(labels, values)),
        plot.scattered(x, x, x, x, probabilities=dict.fromkeys(labels, values[0])),
    ):
        bars = [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]
        assert len(figure.axes) == 2 * len(bars) == 2 * (2 + number)
        assert [bar.get_xlabel() for bar in bars[2:]] == labels
        assert all(bar.get_xlim() == (0.0, 1.0) for bar in bars[2:])


def test_flat_maps_have_no_empty_room_above_them():
    x, y = np.linspace(0, 9, 10), np.linspace(0, 2, 3)
    heights = {}
    for height, grid in {"flat": (x, y), "square": (x, x)}.items():
        values = np.ones((grid[1].size, grid[0].size))
        figure = plot.mean_and_std(*grid, values, values, title="t")
        figure.draw_without_rendering()
        above = figure.get_figheight() * (1 - figure.axes[0].get_position().y1)
        heights[height] = figure.get_figheight()
        assert above < 0.8
    assert heights["flat"] < 0.7 * heights["square"]


@pytest.mark.parametrize("coords", ["planar", "isotropic", "latlon"])
@pytest.mark.parametrize("degrees", [20, 350])
def test_observations_are_dots_on_the_map_of_the_standard_deviation(degrees, coords):
    lon, lat = np.arange(170.0, 170 + degrees, 5), np.arange(-10.0, 11, 5)
    seen = np.array([175.0, 185.0, 188.0]), np.array([0.0, 1.0, 2.0])
    written = (seen[0] - 360 if coords == "latlon" else seen[0], seen[1])
    values = np.ones((lat.size, lon.size))
    figure = plot.mean_and_std(lon, lat, values, values, coords=coords, observed=written)
    (dots,) = [line for line in figure.axes[1].lines if line.get_marker() == "o"]
    middle = (lon[0] + lon[-1]) / 2
    expected = plot.equal_earth(*seen, middle) if coords == "latlon" and degrees > 180 else seen
    np.testing.assert_allclose(dots.get_xydata(), np.transpose(expected))
    assert not [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_observations_are_crosses_among_predicted_points():
    figure = plot.scattered([0.0, 1], [0.0, 1], [1.0, 2], [1.0, 1], observed=([0.5], [0.25]))
    (crosses,) = [line for line in figure.axes[1].lines if line.get_marker() == "x"]
    assert crosses.get_xydata().tolist() == [[0.5, 0.25]]


@pytest.mark.parametrize(("x", "words"), [([], "not empty"), ([np.nan, 1.0], "must be finite")])
def test_what_cannot_be_drawn_is_still_told(x, words):
    with pytest.raises(ValueError, match=words):
        plot.scattered(x, x, x, x)


def test_locators_of_ones_own_stay(ax):
    ax.xaxis.set_major_locator(MultipleLocator(1e6))
    plot.field(ax, np.linspace(4e6, 9e6, 5), np.arange(3.0), np.ones((3, 5)))
    assert isinstance(ax.xaxis.get_major_locator(), MultipleLocator)


def test_large_coordinates_are_written_in_full(ax):
    plot.field(ax, np.linspace(4512000, 4518000, 5), np.linspace(5612000, 5613500, 4), np.ones((4, 5)))
    ax.figure.draw_without_rendering()
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert "4514000" in labels and len(labels) < 7 and not ax.xaxis.get_offset_text().get_text()


@pytest.mark.parametrize(("coords", "drawn"), [("latlon", [179, 181, 178]), ("planar", [179, -179, 178])])
def test_points_across_the_date_line_are_one_region(coords, drawn):
    figure = plot.scattered([179, -179, 178], [0, 1, 2], [1, 2, 3], [1, 1, 1], coords=coords)
    for ax in figure.axes[:2]:
        np.testing.assert_array_equal(ax.collections[0].get_offsets()[:, 0], drawn)
        assert np.ptp(ax.get_xlim()) < 1.1 * np.ptp(drawn)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ax: plot.world(ax, LON, LAT, np.zeros((3, 3))), r"\(size of y, size of x\) = \(18, 36\)"),
        (lambda ax: plot.world(ax, LON * 2, LAT, np.zeros((18, 36))), "within 360"),
        (lambda ax: plot.field(ax, [], [1.0, 2.0], np.zeros((2, 0))), "at least one column and one row, got 0 and 2"),
        (lambda ax: plot.field(ax, [1.0, 2.0], [1.0, 2.0], np.zeros((2, 2)), coords="x"), "planar"),
        (lambda ax: plot.field(ax, [1.0, np.nan], [1.0, 2.0], np.zeros((2, 2))), "`x` and `y` must be finite"),
        (lambda ax: plot.world(ax, [1.0, 2.0], [1.0, np.inf], np.zeros((2, 2))), "`x` and `y` must be finite"),
        (lambda ax: plot.points(ax, [1.0], [1.0, 2.0], [1.0]), "one length"),
        (lambda ax: plot.points(ax, [1.0, np.nan], [1.0, 2.0], [1.0, 2.0]), "`x` and `y` must be finite"),
        (lambda ax: plot.posterior(ax, [1.0], [1.0], [1.0], truth=[1.0, 2.0]), "`truth` .*, 1; got 2"),
        (lambda ax: plot.posterior(ax, [1.0], [1.0], [1.0], context=([1.0], [])), "`context` .* got 1 and 0"),
        (lambda ax: plot.posterior(ax, [1.0], [1.0], [1.0], level=2.0), "level"),
        (lambda ax: plot.regions(ax, ["a"], [1.0], [1.0, 2.0], [2.0]), "one length, got 1, 1, 2 and 1"),
        (lambda ax: plot.regions(ax, ["a"], [1.0], [2.0], [1.0]), "`low` must not be above `high`"),
        (lambda ax: plot.posterior(ax, [1.0, 2.0], [1.0], [1.0, 2.0]), "one length, got 2, 1 and 2"),
    ],
)
def test_bad_input_is_named(call, words, ax):
    with pytest.raises(ValueError, match=words):
        call(ax)


def test_regions_have_their_intervals(ax):
    plot.regions(ax, ["north", "south"], [1.0, 2.0], [0.5, 1.0], [2.0, 2.5])
    (dots, _, (lines,)) = ax.containers[0]
    assert dots.get_xdata().tolist() == [1, 2] and [t.get_text() for t in ax.get_yticklabels()] == ["north", "south"]
    assert [line[:, 0].tolist() for line in lines.get_segments()] == [[0.5, 2], [1, 2.5]]
    assert ax.yaxis_inverted()  # the first one above
    ax.clear()
    plot.regions(ax, np.array(["2020-01", "2020-02"], "M8[M]"), [1.0, 2.0], [0.5, 1.0], [2.0, 2.5])
    (dots, _, (lines,)) = ax.containers[0]
    assert dots.get_ydata().tolist() == [1, 2] and np.diff(dots.get_xdata()) == 31
    ax.clear()
    plot.regions(ax, [str(i) for i in range(61)], *(np.arange(61.0) + i for i in (1, 0, 2)))
    assert not ax.get_yticklabels()


def test_long_names_of_regions_leave_room(ax):
    long = "Catchment of the upper " + 5 * "very " + "long river"
    plot.regions(ax, ["short", long], np.zeros(2), -np.ones(2), np.ones(2))
    short, cut = (label.get_text() for label in ax.get_yticklabels())
    first, last = cut.split("\u2026")
    assert short == "short" and len(cut) <= 32 and long.startswith(first) and long.endswith(last)


def test_a_search_shows_both_minima(ax):
    x = np.linspace(-1, 1, 21)
    truth = (x - 0.5) ** 2
    plot.search(ax, x, truth, np.full(21, 0.1), truth, evaluations=([0.3], [0.1]), proposed=0.3)
    marks = {line.get_label(): line.get_xdata()[0] for line in ax.lines if line.get_marker() == "^"}
    assert marks == {"true minimum": pytest.approx(0.5), "proposed minimum": 0.3}


def test_regrets_are_means_over_runs(ax):
    plot.regret(ax, [[1.0, 0.5, 0.0], [3.0, 0.5, 0.0]], label="a", first=10)
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xydata(), [[10, 2.0], [11, 0.5], [12, 0.0]])
    assert ax.get_yscale() == "log" and len(ax.collections) == 1
    with pytest.raises(ValueError, match="runs by iterations"):
        plot.regret(ax, [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN or infinity in 1 of 2 runs"):
        plot.regret(ax, [[1.0, 0.5], [np.nan, np.nan]])


def test_an_image_has_the_colours_of_its_pixels(ax):
    grey = plot.image(ax, np.array([[-1.0, 1.0], [0.0, np.nan]])).get_array()
    np.testing.assert_allclose(grey[0, 0], 0)
    np.testing.assert_allclose(grey[0, 1], 1)
    np.testing.assert_allclose(grey[1, 0], 0.5, atol=0.01)
    assert grey[1, 1, 2] > 2 * grey[1, 1, 0]  # blue: not seen
    colours = plot.image(ax, np.array([[[0.0, 0.5, 3.0]]]), values=(0.0, 1.0)).get_array()
    np.testing.assert_allclose(colours, [[[0, 0.5, 1]]])


def test_a_completion_may_be_finer_than_what_is_seen():
    axes = Figure().subplots(1, 3)
    plot.completion(axes, np.zeros((2, 2, 3)), np.zeros((8, 8, 3)), np.full((8, 8, 3), 0.2))
    assert [ax.images[0].get_array().shape for ax in axes] == [(2, 2, 3), (8, 8, 3), (8, 8, 3)]


def test_what_is_not_known_leaves_the_colours_of_the_rest():
    axes, std = Figure().subplots(1, 3), np.full((4, 4, 1), 0.5)
    std[0, 0] = np.nan
    plot.completion(axes, np.zeros((4, 4, 1)), np.zeros((4, 4, 1)), std)
    shown = np.asarray(axes[2].images[0].get_array())
    assert (shown[1, 1] > 0.7).all()  # bright


def test_an_epidemic_shows_states_and_entropy():
    axes = Figure().subplots(1, 4)
    context, truth = np.array([[0, 1], [2, -1]]), np.array([[0, 1], [2, 2]])
    certain = np.eye(3)[truth]
    certain[1, 1] = 1 / 3
    handles = plot.epidemic_panels(axes.reshape(2, 2), context, certain, truth)
    assert [handle.get_label() for handle in handles] == ["susceptible", "infected", "recovered"]
    task, entropy, prediction, shown = (np.asarray(ax.images[0].get_array()) for ax in axes)
    np.testing.assert_allclose(entropy, [[0, 0], [0, np.log(3)]])
    np.testing.assert_allclose(prediction[0], shown[0])
    np.testing.assert_allclose(task[0], shown[0])
    assert len({tuple(colour) for colour in np.concatenate([task[1], shown[0]])}) == 4
    np.testing.assert_allclose(prediction[1, 1], (shown[0, 0] + shown[0, 1] + shown[1, 0]) / 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ax: plot.image(ax, np.zeros((2, 2, 2))), r"\(2, 2, 2\)"),
        (lambda ax: plot.completion([ax], *3 * [np.zeros((2, 2))]), "three, got 1"),
        (lambda ax: plot.epidemic_panels([ax], *3 * [np.zeros((2, 2))]), "four, got 1"),
        (lambda ax: plot.epidemic_panels(4 * [ax], *3 * [np.zeros((2, 2), int)]), r"\[rows, columns, 3\]"),
        (
            lambda ax: plot.epidemic_panels(4 * [ax], np.full((2, 2), np.nan), np.ones((2, 2, 3)), np.zeros((2, 2))),
            "`context` must hold 0, 1, 2 and -1, got nan",
        ),
    ],
)
def test_bad_pictures_are_named(call, words, ax):
    with pytest.raises(ValueError, match=words):
        call(ax)

from rich.table import Table

from ..pretrained import pretrained
from ._process import clear_errors, out


def models() -> None:
    """List the pretrained models."""
    from ..serialise import load_card

    names = pretrained()
    if not names:
        out.print("No pretrained models come with this installation.")
        return
    table = Table("name", "trained with", "steps", "date")
    with clear_errors():
        for name in names:
            card = load_card(name)
            table.add_row(name, *(str(card.get(entry, "")) for entry in ("preset", "steps", "date")))
    out.print(table)
    out.print(
        "Use one: npax predict ... --model NAME, npax.NeuralProcessRegressor(model=NAME), npax.load(NAME); field-...: "
        "npax fill ... --model NAME, npax.fill_gaps(..., model=NAME)."
    )

from typer.core import TyperArgument, TyperCommand, TyperOption

from .. import bench as harness


class NamesInHelp(TyperCommand):
    """A command whose help says `{models}`, `{rows}`, `{tables}` or `{trainings}` where all their names shall be.

    They are imported when that help is asked for: all of JAX comes with them, which takes seconds."""

    def format_help(self, ctx, formatter):
        from .train import trainings

        known = {
            "{trainings}": trainings(),
            "{models}": harness.model_presets(),
            "{rows}": (*harness.ROWS, harness.TILED),
            "{tables}": harness.SIZES,
        }
        for option in self.params:
            if isinstance(option, TyperArgument | TyperOption) and option.help:
                for place, names in known.items():
                    option.help = option.help.replace(place, ", ".join(names))
        return TyperCommand.format_help(self, ctx, formatter)

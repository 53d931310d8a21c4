from typer.core import TyperCommand

from ..numeric import is_number


class SeveralValues(TyperCommand):
    """A command whose options of several values take them together, `--x a b`, or one by one, `--x a --x b`."""

    def parse_args(self, ctx, args):
        for option in (name for param in self.params if getattr(param, "multiple", False) for name in param.opts):
            args = repeat_option(list(args), option)
        return TyperCommand.parse_args(self, ctx, args)

    def collect_usage_pieces(self, ctx):
        """Arguments come before options: after `--x` they would be values of it."""
        options, *arguments = TyperCommand.collect_usage_pieces(self, ctx)
        return [*arguments, options]


def repeat_option(args: list[str], option: str) -> list[str]:
    """`--x a b --y c`, or `--x=a b`, as `--x a --x b --y c`: an option's values end where the next option begins."""
    spread, given, count = [], False, 0
    for arg in args:
        if arg.startswith("-") and len(arg) > 1 and not (given and is_number(arg)):  # negative numbers begin so, too
            name, _, value = arg.partition("=")
            given, count = name == option, int(bool(value))
            spread.append(arg)
            continue
        if given and count:
            spread.append(option)
        spread.append(arg)
        count += 1
    return spread

import inspect


def in_paragraphs(text: str) -> str:
    """The lines of each paragraph as one, which a terminal of any width breaks anew; those that are indented, such as
    examples, as they are."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else " ".join(part.split()) for part in parts)

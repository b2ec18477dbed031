"""Errors a person can act on."""


class InputError(ValueError):
    """Input refused at the door: the message says what was given, what was expected, and how to fix it.

    The command line prints it without a traceback and exits with status 2.
    """


def a_kind(thing: object) -> str:
    """What a thing is, with its article, for such messages.

    >>> a_kind(3), a_kind("3")
    ('an int', 'a str')
    """
    name = type(thing).__name__
    return f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o', 'u', 'nd')) else 'a'} {name}"


def shown(value: object) -> str:
    """A value of a user's as text for such messages: short, and whatever its own `__repr__` does.

    >>> shown("text"), shown(10**5000)
    ("'text'", '(an int that cannot be shown)')
    """
    try:
        text = repr(value)
    except Exception:  # a whole number of 5000 digits, for one
        return f"({a_kind(value)} that cannot be shown)"
    return text if len(text) <= 80 else f"{text[:77]}…"

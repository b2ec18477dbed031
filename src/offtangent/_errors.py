"""Errors a person can act on."""


class InputError(ValueError):
    """Input refused at the door: the message says what was given, what was expected, and how to fix it.

    The command line prints it without a traceback and exits with status 2.
    """

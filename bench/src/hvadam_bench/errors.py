"""The error for what a user gave and nobody can use."""


class RefusedError(ValueError):
    """A file, folder or name cannot be used; the message, one line, says why and what to do.

    The command line prints it from wherever it comes. Other errors are our own mistakes.
    """

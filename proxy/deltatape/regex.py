"""What regular expressions need on all Pythons that are supported."""

OR_NONE = "|(?!)"
"""The last alternative of a possessive group, such as `(?:a?b|c|(?!))*+`.

Before Python 3.11.5, such a group goes on where an alternative failed instead of where that began
(https://github.com/python/cpython/issues/106052); an alternative that fails at once sets it back.
Needed where one can fail after a choice or repetition of its own.
"""

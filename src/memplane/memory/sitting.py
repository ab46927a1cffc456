"""Where one sitting of a conversation ends and the next begins."""

from datetime import timedelta

PAUSE = timedelta(hours=2)
"""Who comes back after that begins something new."""

ANEW = 0
"""In place of when its last turn was: the conversation is told anew as soon as somebody tells."""

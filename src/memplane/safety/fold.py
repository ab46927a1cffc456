"""Text in one case, width and alphabet, so that detection does not depend on how it is written."""

import re
from unicodedata import normalize

# Look-alike characters. Joiners are removed for matching, but stay in the displayed text.
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b-\\u200f"
    "\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U000e0fff\\u0300-\\u0338]+"
)
_LOOKALIKES = str.maketrans(
    "аеорсухіѕјԁһтмкοανειρτυκօսոıɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅᴍłøđ", "aeopcyxisjdhtmkoaveiptukouniignorealpvustcdmlod"
)


def fold(text: str) -> str:
    """The normalised text: without invisible characters, in one width, case and alphabet."""
    if text.isascii():
        return text.lower()
    plain = _UNSEEN.sub("", normalize("NFKD", text))
    return normalize("NFC", plain).casefold().translate(_LOOKALIKES)

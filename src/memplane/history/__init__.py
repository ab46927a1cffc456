"""Session histories on disk, as Clawdapus keeps them: one directory an agent, written and read by several processes."""

from memplane.history.files import agent_folder_name, read_session
from memplane.history.index import Index, build_index
from memplane.history.recorder import MAX_BYTES_DEFAULT, Recorder

__all__ = ["MAX_BYTES_DEFAULT", "Index", "Recorder", "agent_folder_name", "build_index", "read_session"]

"""Documents and collections."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from memplane.config import reason_of
from memplane.errors import InvalidRequest
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import Project
from memplane.terminal.output import line, table, when

app = typer.Typer()
document = typer.Typer(help="Upload, list, read and delete documents.", no_args_is_help=True)
collection = typer.Typer(help="Group documents into collections.", no_args_is_help=True)
app.add_typer(document, name="document")
app.add_typer(collection, name="collection")

DocumentId = Annotated[str, typer.Argument(metavar="ID", help="Document id.")]
CollectionId = Annotated[str, typer.Argument(metavar="COLLECTION", help="Collection id.")]
Position = Annotated[int | None, typer.Option("--position", min=0, help="Position in an ordered collection.")]


@command(
    document,
    examples=[
        "memplane document upload manual.pdf",
        "memplane document upload notes.md --id notes --project kitchen",
        "cat page.html | memplane document upload - --name page.html",
    ],
)
def upload(
    call: CommandContext,
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="Text, Markdown, HTML, PDF or DOCX; - for stdin.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Document name (default: the file name).")
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Document id; an existing document with this id is replaced."
        ),
    ] = None,
    project: Project = None,
    media_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Media type, such as text/markdown (default: detected)."),
    ] = None,
    into: Annotated[
        str | None, typer.Option("--collection", metavar="ID", help="Add the document to this collection.")
    ] = None,
    position: Position = None,
) -> None:
    """Upload a document, so that recall finds its content."""
    if path == "-" and name is None:
        raise typer.BadParameter("--name is required when reading from stdin")
    kept = call.space().documents.upload(
        _content(call, path),
        name=name or Path(path).name,
        id=id,
        project=project,
        media_type=media_type,
        collection=into,
        position=position,
    )
    call.out.answer(
        kept,
        line(
            (kept.id, "bold"),
            f"  {kept.name}: {kept.sections} sections, {kept.spans} spans, {kept.chars:,} characters",
        ),
    )


@command(document, "list", examples=["memplane document list", "memplane document list --collection guides"])
def list_documents(
    call: CommandContext,
    project: Project = None,
    of: Annotated[
        str | None, typer.Option("--collection", metavar="ID", help="Only documents in this collection.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")] = 100,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Skip this many results.")] = 0,
) -> None:
    """List documents, newest first, or in the order of a collection."""
    space = call.existing_space()
    found = space.documents.list(project=project, collection=of, limit=limit, offset=offset)
    total = space.documents.count(project=project, collection=of)
    rows = [
        (one.id, one.name, one.project or "", one.spans, one.status, when(one.updated_at)) for one in found
    ]
    call.out.answer(
        {"documents": found, "total": total},
        table("id", "name", "project", "spans", "status", "updated", rows=rows),
    )


@command(document, examples=["memplane document show notes", "memplane document show notes --text"])
def show(
    call: CommandContext,
    document_id: DocumentId,
    text: Annotated[bool, typer.Option("--text", help="Print only the full text.")] = False,
) -> None:
    """Show a document with a summary of each section, or its text."""
    whole = call.existing_space().documents.get_whole(document_id, text=text)
    found, sections = whole.document, whole.sections
    if whole.text is not None:
        call.out.answer_text({"document": found, "text": whole.text}, whole.text)
        return
    rows = [
        (part.ordinal, " > ".join(part.path), part.start, part.end, part.distillation or "")
        for part in sections
    ]
    call.out.note(f"{found.name} · {found.media_type} · {found.status} · {found.distillation or ''}")
    call.out.answer(
        {"document": found, "sections": sections},
        table("section", "title", "from", "to", "summary", rows=rows),
    )


@command(document, examples=["memplane document delete notes"])
def delete(call: CommandContext, document_id: DocumentId) -> None:
    """Delete a document permanently: all versions, passages and collection memberships."""
    receipt = call.existing_space().documents.delete(document_id)
    call.out.answer(receipt, line((receipt.id, "bold"), f"  {receipt.counts['spans']} spans forgotten"))


@command(collection, examples=["memplane collection create Guides --id guides --ordered"])
def create(
    call: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Collection name.")],
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Collection id (default: generated).")
    ] = None,
    project: Project = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Keep documents in order of their positions.")
    ] = False,
) -> None:
    """Create a collection."""
    made = call.space().documents.create_collection(name, project=project, ordered=ordered, id=id)
    call.out.answer(made, line((made.id, "bold"), f"  {made.name}"))


@command(collection, "list", examples=["memplane collection list"])
def list_collections(call: CommandContext, project: Project = None) -> None:
    """List collections, newest first."""
    found = call.existing_space().documents.collections(project=project, limit=1_000)
    rows = [
        (
            one.id,
            one.name,
            one.project or "",
            one.documents,
            "yes" if one.ordered else "no",
            when(one.created_at),
        )
        for one in found
    ]
    call.out.answer(
        {"collections": found}, table("id", "name", "project", "documents", "ordered", "created", rows=rows)
    )


@command(collection, examples=["memplane collection add guides notes --position 1"])
def add(
    call: CommandContext, collection_id: CollectionId, document_id: DocumentId, position: Position = None
) -> None:
    """Add a document to a collection, or change its position."""
    call.existing_space().documents.add_to_collection(collection_id, document_id, position=position)
    call.out.answer({"collection": collection_id, "document": document_id}, line("Added"))


@command(collection, examples=["memplane collection remove guides notes"])
def remove(call: CommandContext, collection_id: CollectionId, document_id: DocumentId) -> None:
    """Remove a document from a collection. The document is kept."""
    call.existing_space().documents.remove_from_collection(collection_id, document_id)
    call.out.answer({"collection": collection_id, "document": document_id}, line("Removed"))


@command(collection, "delete", examples=["memplane collection delete guides"])
def delete_collection(call: CommandContext, collection_id: CollectionId) -> None:
    """Delete a collection. Its documents are kept."""
    call.existing_space().documents.delete_collection(collection_id)
    call.out.answer({"collection": collection_id}, line("Deleted; its documents are kept"))


def _content(call: CommandContext, path: str) -> bytes:
    """Read a file or stdin, one byte beyond the limit, so that the engine can reject what is too large."""
    bytes_max = call.plane.settings.document_bytes_max + 1
    if path == "-":
        return sys.stdin.buffer.read(bytes_max)
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(bytes_max)
    except OSError as exc:
        raise InvalidRequest(f"cannot read {path}: {reason_of(exc)}") from exc

"""Provision a storage account, a container for one agent's user, and access to that container only, with Azure's
command line.

Existing resources are used, so running it twice changes nothing.
"""

import argparse
import hashlib
import re
import secrets
import shutil
import subprocess
import sys
from typing import Final

RESOURCE_GROUP: Final = "entrabot-rg"
DEFAULT_LOCATION: Final = "eastus"
STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE: Final = "Storage Blob Data Contributor"

_ACCOUNT_PREFIX = "entclaw"
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_NOT_STARTED = 127


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _run_az(args: list[str]) -> subprocess.CompletedProcess[str]:
    """One call of `az`. Replaced by tests."""
    program = shutil.which("az")
    if program is None:
        return subprocess.CompletedProcess(
            args, _NOT_STARTED, "", "`az` is not installed, or not on the PATH"
        )
    return subprocess.run(  # noqa: S603 - names are checked, and no shell sees them
        [program, *args], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def storage_account_name_for_tenant(tenant_id: str) -> str:
    """One account per tenant, with a name that every user of the tenant derives; account names are unique across
    Azure."""
    return f"{_ACCOUNT_PREFIX}{hashlib.sha256(tenant_id.encode()).hexdigest()[:16]}"


def random_storage_account_name_for_tenant(tenant_id: str) -> str:
    """A separate account whose name identifies the tenant."""
    return f"{_ACCOUNT_PREFIX}{hashlib.sha256(tenant_id.encode()).hexdigest()[:8]}{secrets.token_hex(4)}"


def container_name_for_agent_user(agent_user_object_id: str) -> str:
    return f"agent-{agent_user_object_id.lower()}"


def validate_storage_account_name(name: str) -> None:
    if not _ACCOUNT.fullmatch(name):
        raise ValueError(
            f"Invalid storage account name {name!r}: Azure takes 3 to 24 lowercase letters and digits"
        )


def validate_container_name(name: str) -> None:
    if not _CONTAINER.fullmatch(name):
        raise ValueError(
            f"Invalid container name {name!r}: Azure takes 3 to 63 lowercase letters, digits and single dashes "
            "between them"
        )


def blob_endpoint_for_account(account: str) -> str:
    return f"https://{account}.blob.core.windows.net"


def ensure_resource_group(name: str, location: str) -> None:
    _ensure(
        f"resource group {name!r} in {location!r}",
        ["group", "show", "--name", name],
        ["group", "create", "--name", name, "--location", location],
    )


def ensure_storage_account(name: str, resource_group: str, location: str) -> None:
    which = ["--name", name, "--resource-group", resource_group]
    kind = ["--sku", "Standard_LRS", "--kind", "StorageV2"]
    closed = ["--allow-blob-public-access", "false", "--min-tls-version", "TLS1_2"]
    _ensure(
        f"storage account {name!r}",
        ["storage", "account", "show", *which],
        ["storage", "account", "create", *which, "--location", location, *kind, *closed],
    )


def ensure_container(account: str, container: str) -> None:
    which = ["--account-name", account, "--name", container, "--auth-mode", "login"]
    _ensure(
        f"container {container!r} on {account!r}",
        ["storage", "container", "show", *which],
        ["storage", "container", "create", *which],
    )


def _ensure(what: str, show: list[str], create: list[str]) -> None:
    if _run_az(show).returncode == 0:
        _say(f"  • {what}: exists")
        return
    _argument(create, " ".join(create[: create.index("create") + 1]))
    _say(f"  • {what}: created")


def _argument(args: list[str], what: str) -> str:
    done = _run_az(args)
    if done.returncode:
        raise RuntimeError(f"az {what} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def assign_container_rbac(
    account: str, container: str, resource_group: str, principal_object_id: str
) -> None:
    """Access to read and write blobs in this container only."""
    which = ["--name", account, "--resource-group", resource_group]
    account_id = _argument(
        ["storage", "account", "show", *which, "--query", "id", "-o", "tsv"], "storage account show"
    )
    who = ["--assignee-object-id", principal_object_id, "--assignee-principal-type", "User"]
    scope = f"{account_id}/blobServices/default/containers/{container}"
    done = _run_az(
        [
            *("role", "assignment", "create", *who),
            *("--role", STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE, "--scope", scope),
        ]
    )
    said = f"{done.stderr}{done.stdout}".lower()
    if done.returncode and "already exists" not in said and "roleassignmentexists" not in said:
        raise RuntimeError(f"az role assignment create failed: {done.stderr.strip()}")
    _say(f"  • {STORAGE_BLOB_DATA_CONTRIBUTOR_ROLE} on the container: assigned")


def provision(
    *,
    tenant_id: str,
    agent_user_object_id: str,
    location: str = DEFAULT_LOCATION,
    storage_account: str | None = None,
    container: str | None = None,
    create_new_storage: bool = False,
) -> tuple[str, str]:
    """Create what is missing; returns endpoint and container. Raises `ValueError` for names that Azure rejects and
    `RuntimeError` with `az`'s message if it fails."""
    if storage_account is not None and create_new_storage:
        raise ValueError(
            "storage_account and create_new_storage are mutually exclusive: name one, or have one made"
        )
    if storage_account is not None:
        validate_storage_account_name(storage_account)
    make_name = (
        random_storage_account_name_for_tenant if create_new_storage else storage_account_name_for_tenant
    )
    account = storage_account or make_name(tenant_id)
    name = container_name_for_agent_user(agent_user_object_id) if container is None else container
    validate_container_name(name)
    ensure_resource_group(RESOURCE_GROUP, location)
    ensure_storage_account(account, RESOURCE_GROUP, location)
    ensure_container(account, name)
    assign_container_rbac(account, name, RESOURCE_GROUP, agent_user_object_id)
    return blob_endpoint_for_account(account), name


def say_cost() -> None:
    """Print the expected cost once, before the first bill."""
    _say("")
    _say("  Estimated monthly cost (typical workload): ~$0.05–0.50/mo per Agent User")  # noqa: RUF001
    _say("  (Standard_LRS, less than 1 GB, less than 10,000 transactions a day)")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Provision Azure Blob Storage for the memory of an Agent User."
    )
    parser.add_argument("--tenant-id", required=True, help="the Entra tenant")
    parser.add_argument("--agent-user-object-id", required=True, help="the Agent User's object id")
    parser.add_argument(
        "--location", default=DEFAULT_LOCATION, help=f"the region (default {DEFAULT_LOCATION})"
    )
    parser.add_argument("--with-storage-account", metavar="NAME", help="this account instead of the tenant's")
    parser.add_argument(
        "--with-container", metavar="NAME", help="this container instead of agent-<object id>"
    )
    parser.add_argument(
        "--create-new-storage", action="store_true", help="a new account, even if there is one"
    )
    given = parser.parse_args(argv)
    if given.create_new_storage and given.with_storage_account is not None:
        parser.error("--create-new-storage and --with-storage-account are mutually exclusive")
    try:
        endpoint, container = provision(
            tenant_id=given.tenant_id,
            agent_user_object_id=given.agent_user_object_id,
            location=given.location,
            storage_account=given.with_storage_account,
            container=given.with_container,
            create_new_storage=given.create_new_storage,
        )
    except (RuntimeError, ValueError) as exc:
        _say(f"ERROR: {exc}")
        return 1
    sys.stdout.write(f"BLOB_ENDPOINT={endpoint}\nBLOB_CONTAINER={container}\n")
    say_cost()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""EntraBot's provisioning, with an `az` that plays Azure."""

import re

import pytest

from azure_cli import ACCOUNT_ID, DEFAULT, MISSING, fake_az
from memplane.adapters.entrabot.scripts import provision_blob_storage as script

WHO = {"tenant_id": "tid-123", "agent_user_object_id": "OID-abc"}
ARGUMENTS = ["--tenant-id", "tid-123", "--agent-user-object-id", "OID-abc"]


@pytest.fixture
def az(tmp_path, monkeypatch):
    return fake_az(tmp_path / "az", monkeypatch)


# Names


def test_the_name_of_an_account_is_the_same_every_time():
    """
    Everybody in a tenant finds the same account.
    """
    name = script.storage_account_name_for_tenant("tid-123")

    assert name == script.storage_account_name_for_tenant("tid-123") == "entclawee65edc50457644b"


def test_the_name_of_an_account_is_one_azure_takes():
    """
    3 to 24 lowercase letters and digits.
    """
    assert re.fullmatch("entclaw[0-9a-f]{16}", script.storage_account_name_for_tenant("tid-123"))


def test_tenants_have_accounts_of_their_own():
    """
    Names are unique in all of Azure.
    """
    names = {script.storage_account_name_for_tenant(tenant) for tenant in ("tid-1", "tid-2")}

    assert len(names) == 2


def test_a_container_is_named_after_the_agents_user():
    """
    In lowercase, as Azure wants it.
    """
    assert script.container_name_for_agent_user("ABCD-1234-5678-90AB") == "agent-abcd-1234-5678-90ab"


def test_a_new_account_has_a_new_name():
    """
    Each time.
    """
    names = {script.random_storage_account_name_for_tenant("tid-x") for _ in range(10)}

    assert len(names) == 10


def test_a_new_account_shows_its_tenant():
    """
    And its name is one Azure takes.
    """
    first, second = (script.random_storage_account_name_for_tenant("tid-x") for _ in range(2))

    assert re.fullmatch("entclaw[0-9a-f]{16}", first)
    assert first[:15] == second[:15]


def test_a_good_name_of_an_account_is_taken():
    """
    Whoever has one may use it.
    """
    script.validate_storage_account_name("entclaw1234abcd")


@pytest.mark.parametrize("name", ["ab", "a" * 25, "Entclaw", "ent-claw", "entclaw_x"])
def test_a_bad_name_of_an_account_is_refused(name):
    """
    Too short, too long, and letters Azure does not take.
    """
    with pytest.raises(ValueError, match="Invalid storage account name"):
        script.validate_storage_account_name(name)


def test_a_good_name_of_a_container_is_taken():
    """
    With dashes or without.
    """
    script.validate_container_name("agent-abc-123")
    script.validate_container_name("abc")


@pytest.mark.parametrize("name", ["ab", "Agent", "-leading", "trailing-", "double--dash", "with_underscore"])
def test_a_bad_name_of_a_container_is_refused(name):
    """
    Too short, and letters and dashes Azure does not take.
    """
    with pytest.raises(ValueError, match="Invalid container name"):
        script.validate_container_name(name)


# All of it


def test_everything_is_made_in_order_and_the_right_is_given(az):
    """
    Group, account, container, then the right to that container alone.
    """
    az.answers(MISSING)

    endpoint, container = script.provision(**WHO)

    account = script.storage_account_name_for_tenant("tid-123")
    assert (endpoint, container) == (f"https://{account}.blob.core.windows.net", "agent-oid-abc")
    which = f"--name {account} --resource-group entrabot-rg"
    place = f"--account-name {account} --name agent-oid-abc --auth-mode login"
    closed = "--allow-blob-public-access false --min-tls-version TLS1_2"
    who = "--assignee-object-id OID-abc --assignee-principal-type User --role Storage Blob Data Contributor"
    scope = f"{ACCOUNT_ID}/blobServices/default/containers/agent-oid-abc"
    assert az.asked() == [
        "group show --name entrabot-rg",
        "group create --name entrabot-rg --location eastus",
        f"storage account show {which}",
        f"storage account create {which} --location eastus --sku Standard_LRS --kind StorageV2 {closed}",
        f"storage container show {place}",
        f"storage container create {place}",
        f"storage account show {which} --query id -o tsv",
        f"role assignment create {who} --scope {scope}",
    ]


def test_what_is_there_is_used(az):
    """
    Running it again makes nothing.
    """
    script.provision(**WHO)

    assert [line for line in az.asked() if " create " in line and not line.startswith("role")] == []


@pytest.mark.parametrize("said", ["RoleAssignmentExists: it is there"])
def test_a_right_that_is_given_already_is_no_error(az, said):
    """
    Some versions of `az` call it one.
    """
    az.answers([*DEFAULT, ("role assignment create", 1, "", said)])

    script.provision(**WHO)


def test_what_azure_refuses_is_said(az):
    """
    By the step that failed, with what `az` said about it.
    """
    az.answers([("group show", 3, "", "not found"), ("group create", 1, "", "auth blocked")])

    with pytest.raises(RuntimeError, match="az group create failed: auth blocked"):
        script.provision(**WHO)


# As a script


def test_the_script_prints_what_a_shell_can_take(az, capsys):
    """
    Two lines on stdout; all else, and the cost, on stderr.
    """
    assert script.main(ARGUMENTS) == 0

    out, err = capsys.readouterr()
    account = script.storage_account_name_for_tenant("tid-123")
    assert out.splitlines() == [
        f"BLOB_ENDPOINT=https://{account}.blob.core.windows.net",
        "BLOB_CONTAINER=agent-oid-abc",
    ]
    assert "~$0.05–0.50/mo" in err


def test_the_script_fails_where_azure_does(az, capsys):
    """
    With nothing on stdout.
    """
    az.answers([("*", 1, "", "nope")])

    assert script.main(ARGUMENTS) == 1
    assert capsys.readouterr().out == ""


# Other names than its own


def test_another_account_is_used(az):
    """
    In every call.
    """
    endpoint, _ = script.provision(**WHO, storage_account="myaccount")

    assert endpoint == "https://myaccount.blob.core.windows.net"
    assert "storage account show --name myaccount --resource-group entrabot-rg" in az.asked()


def test_another_container_is_used(az):
    """
    In every call.
    """
    _, container = script.provision(**WHO, container="my-shared-container")

    assert container == "my-shared-container"
    assert any(
        line.startswith("storage container show") and "my-shared-container" in line for line in az.asked()
    )


def test_a_new_account_is_made_when_asked_for(az):
    """
    Even if there is one.
    """
    az.answers(MISSING)

    endpoint, _ = script.provision(**WHO, create_new_storage=True)

    assert script.storage_account_name_for_tenant("tid-123") not in endpoint


def test_an_account_is_named_or_new(az):
    """
    Not both; nothing is asked of Azure.
    """
    with pytest.raises(ValueError, match="mutually exclusive"):
        script.provision(**WHO, storage_account="myaccount", create_new_storage=True)

    assert az.asked() == []


def test_a_bad_account_is_refused_before_azure_is_asked(az):
    """
    It would refuse it too, later and less clearly.
    """
    with pytest.raises(ValueError, match="Invalid storage account name"):
        script.provision(**WHO, storage_account="UPPERCASE")

    assert az.asked() == []


def test_a_bad_container_is_refused_before_azure_is_asked(az):
    """
    As a bad account is.
    """
    with pytest.raises(ValueError, match="Invalid container name"):
        script.provision(**WHO, container="bad_underscore")

    assert az.asked() == []


def test_the_script_takes_one_of_the_two(az, capsys):
    """
    And says which two.
    """
    with pytest.raises(SystemExit) as ended:
        script.main([*ARGUMENTS, "--with-storage-account", "acct", "--create-new-storage"])

    assert ended.value.code != 0
    assert "mutually exclusive" in capsys.readouterr().err


def test_the_script_passes_names_on(az, capsys):
    """
    As they are given.
    """
    given = ["--with-storage-account", "myaccount", "--with-container", "mycontainer"]

    assert script.main([*ARGUMENTS, *given]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "BLOB_ENDPOINT=https://myaccount.blob.core.windows.net",
        "BLOB_CONTAINER=mycontainer",
    ]


def test_the_script_makes_a_new_account(az, capsys):
    """
    When told to.
    """
    assert script.main([*ARGUMENTS, "--create-new-storage"]) == 0
    assert script.storage_account_name_for_tenant("tid-123") not in capsys.readouterr().out


# Beyond


def test_without_az_it_says_so(monkeypatch, tmp_path, capsys):
    """
    And nothing breaks.
    """
    monkeypatch.setenv("PATH", str(tmp_path))

    assert script.main(ARGUMENTS) == 1
    assert "not installed" in capsys.readouterr().err

"""The Clawdapus memory plane: the API that cllama and `claw memory` call."""

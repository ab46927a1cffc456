"""The operator's side of a Clawdapus pod: what its `claw-pod.yml` says, compiled into files, and what is done with them."""

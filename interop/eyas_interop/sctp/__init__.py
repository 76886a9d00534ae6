"""SCTP of eyas-sctp against the stacks of others: Linux in a User Mode guest, usrsctp, pion."""

"""eyas-sctp against other SCTP stacks: Linux in a User Mode Linux guest, usrsctp, pion."""

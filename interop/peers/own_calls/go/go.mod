module eyas.invalid/peer-own-calls

go 1.26.0

require github.com/ishidawataru/sctp v0.0.0-20251114114122-19ddcbc6aae2

module example.org/peer

go 1.26

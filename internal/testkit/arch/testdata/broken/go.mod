module broken

go 1.26

require example.org/peer v0.0.0

replace example.org/peer => ./peer

package app

// Version is that of this daemon.
const Version = "0.1.0"

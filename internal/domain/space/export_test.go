package space

// MaxShownPathRune is how many characters of a path an error shows.
const MaxShownPathRune = maxShownPathRune

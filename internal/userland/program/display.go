package program

// Display is one form of a value that a program shows beside its output, such as a table as HTML or a picture as PNG.
type Display struct {
	Value   int    // counts the values that were shown, from 1; the forms of one value follow each other, its text first
	Result  bool   // the value is the result of the code that ran
	Type    string // the name of the value's type in its language
	Media   string // the media type of Data
	Data    []byte
	Rows    int // of a table, all that it has; 0 for other values
	Columns int
	Width   int // of a picture, in pixels; 0 for other values
	Height  int
}

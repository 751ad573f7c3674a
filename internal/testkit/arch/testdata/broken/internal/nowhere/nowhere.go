// This package lies on no floor and does not say what it is.
package nowhere

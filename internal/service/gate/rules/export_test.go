package rules

// Read returns a preset with overrides.
func Read(preset string, overrides []byte) (Spec, error) {
	spec, err := Preset(preset)
	if err != nil {
		return Spec{}, err
	}
	return parse(overrides, spec)
}

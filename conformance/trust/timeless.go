package main

import "context"

func (x *examiner) timeless(ctx context.Context, r *result) error { return nil }

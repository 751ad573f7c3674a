(module (memory 1) (table 2 funcref) (func $f) (elem declare func $f)
  (func (export "run") (table.set 0 (i32.const 0) (ref.func $f))))

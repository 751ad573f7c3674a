(module
  (type (;0;) (func))
  (type (;1;) (func))
  (import "meter" "yield" (func (;0;) (type 1)))
  (func (;1;) (type 0)
    global.get 3
    i64.const 3
    i64.sub
    global.set 3
    i32.const 8
    global.set 0)
  (memory (;0;) 1)
  (global (;0;) (mut i32) (i32.const 7))
  (global (;1;) i64 (i64.const 9))
  (global (;2;) (mut f64) (f64.const 0x1p-1 (;=0.5;)))
  (global (;3;) (mut i64) (i64.const 0))
  (global (;4;) (mut i64) (i64.const 0))
  (export "meter.global.0" (global 0))
  (export "meter.global.2" (global 2))
  (export "memory" (memory 0))
  (export "meter.gas" (global 3))
  (export "meter.depth" (global 4))
  (export "meter.start" (func 1))
  (data (;0;) "")
  (data (;1;) "kept")
  (data (;2;) ""))

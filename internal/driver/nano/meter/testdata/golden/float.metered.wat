(module
  (type (;0;) (func (param f64 f64) (result f64)))
  (type (;1;) (func (param f32) (result f32)))
  (type (;2;) (func (param f64) (result i32)))
  (type (;3;) (func (param i32) (result v128)))
  (type (;4;) (func))
  (import "meter" "yield" (func (;0;) (type 4)))
  (func (;1;) (type 0) (param f64 f64) (result f64)
    (local f64)
    global.get 0
    i64.const 21
    i64.sub
    global.set 0
    local.get 0
    local.get 1
    f64.mul
    local.get 1
    f64.const 0x1.8p+1 (;=3;)
    f64.div
    f64.add
    f64.sqrt
    local.tee 2
    f64.const nan (;=nan;)
    local.get 2
    local.get 2
    f64.eq
    select)
  (func (;2;) (type 1) (param f32) (result f32)
    (local f32)
    global.get 0
    i64.const 8
    i64.sub
    global.set 0
    local.get 0
    f32.const 0x1p+0 (;=1;)
    f32.add
    local.tee 1
    f32.const nan (;=nan;)
    local.get 1
    local.get 1
    f32.eq
    select
    local.set 0
    local.get 0
    f32.neg)
  (func (;3;) (type 2) (param f64) (result i32)
    global.get 0
    i64.const 6
    i64.sub
    global.set 0
    local.get 0
    f64.ceil
    f64.const 0x1.8p+1 (;=3;)
    f64.lt)
  (func (;4;) (type 3) (param i32) (result v128)
    (local v128)
    global.get 0
    i64.const 21
    i64.sub
    global.set 0
    local.get 0
    v128.load
    local.get 0
    v128.load
    f64x2.mul
    local.tee 1
    v128.const i32x4 0x00000000 0x7ff80000 0x00000000 0x7ff80000
    local.get 1
    local.get 1
    f64x2.eq
    v128.bitselect
    local.get 0
    v128.load
    f64x2.sqrt
    local.tee 1
    v128.const i32x4 0x00000000 0x7ff80000 0x00000000 0x7ff80000
    local.get 1
    local.get 1
    f64x2.eq
    v128.bitselect
    f32x4.add
    local.tee 1
    v128.const i32x4 0x7fc00000 0x7fc00000 0x7fc00000 0x7fc00000
    local.get 1
    local.get 1
    f32x4.eq
    v128.bitselect)
  (memory (;0;) 1)
  (global (;0;) (mut i64) (i64.const 0))
  (global (;1;) (mut i64) (i64.const 0))
  (export "chain" (func 1))
  (export "apart" (func 2))
  (export "compare" (func 3))
  (export "lanes" (func 4))
  (export "meter.gas" (global 0))
  (export "meter.depth" (global 1)))

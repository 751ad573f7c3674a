(module
  (import "host" "twist" (func $twist (param i32) (result i32)))
  (func $leaf (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func (export "sum") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (local.get 1) (call $leaf (local.get 0))))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (if (i32.eqz (local.get 1)) (then (return (i32.const 7))))
    (block $out
      (if (local.get 0) (then (br $out)) (else (local.set 1 (call $twist (local.get 1)))))
      (br_table $out $out (local.get 0)))
    (local.get 1))
  (func (export "pair") (result i32 i64) (call $none) (i32.const 1) (i64.const 2))
  (func $none (nop)))

(module
  (type (;0;) (func (param i32) (result i32)))
  (type (;1;) (func (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (type (;2;) (func))
  (import "meter" "yield" (func (;0;) (type 2)))
  (func (;1;) (type 0) (param i32) (result i32)
    (local i64 i64)
    global.get 1
    i64.const 1
    i64.sub
    local.tee 1
    global.set 1
    global.get 0
    i64.const 4
    i64.sub
    local.tee 2
    global.set 0
    local.get 2
    local.get 1
    i64.or
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    block (result i32)  ;; label = @1
      local.get 0
      i32.eqz
      if (result i32)  ;; label = @2
        global.get 0
        i64.const 1
        i64.sub
        global.set 0
        i32.const 1
      else
        global.get 0
        i64.const 6
        i64.sub
        global.set 0
        local.get 0
        i32.const 1
        i32.sub
        global.get 1
        i64.const 1
        i64.add
        global.set 1
        return_call 2
      end
    end
    global.get 1
    i64.const 1
    i64.add
    global.set 1)
  (func (;2;) (type 0) (param i32) (result i32)
    (local i64 i64)
    global.get 1
    i64.const 1
    i64.sub
    local.tee 1
    global.set 1
    global.get 0
    i64.const 4
    i64.sub
    local.tee 2
    global.set 0
    local.get 2
    local.get 1
    i64.or
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    block (result i32)  ;; label = @1
      local.get 0
      i32.eqz
      if  ;; label = @2
        global.get 0
        i64.const 2
        i64.sub
        global.set 0
        i32.const 0
        br 1 (;@1;)
      end
      global.get 0
      i64.const 9
      i64.sub
      global.set 0
      local.get 0
      i32.const 1
      i32.sub
      i32.const 0
      global.get 1
      i64.const 1
      i64.add
      global.set 1
      return_call_indirect (type 0)
    end
    global.get 1
    i64.const 1
    i64.add
    global.set 1)
  (func (;3;) (type 1) (param i32 i32 i32 i32 i32 i32 i32) (result i32)
    (local i64 i64)
    global.get 1
    i64.const 1
    i64.sub
    local.tee 7
    global.set 1
    global.get 0
    i64.const 11
    i64.sub
    local.tee 8
    global.set 0
    local.get 8
    local.get 7
    i64.or
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    block (result i32)  ;; label = @1
      local.get 1
      local.get 2
      local.get 3
      local.get 4
      local.get 5
      local.get 6
      local.get 0
      call 3
      br 0 (;@1;)
    end
    global.get 1
    i64.const 1
    i64.add
    global.set 1)
  (table (;0;) 1 1048576 funcref)
  (global (;0;) (mut i64) (i64.const 0))
  (global (;1;) (mut i64) (i64.const 0))
  (export "even" (func 1))
  (export "meter.gas" (global 0))
  (export "meter.depth" (global 1))
  (elem (;0;) (i32.const 0) func 2))

(module
  (type (;0;) (func (param i32) (result i32)))
  (type (;1;) (func (result i32 i64)))
  (type (;2;) (func))
  (type (;3;) (func (result i32 i64)))
  (type (;4;) (func))
  (import "host" "twist" (func (;0;) (type 0)))
  (import "meter" "yield" (func (;1;) (type 4)))
  (func (;2;) (type 0) (param i32) (result i32)
    global.get 0
    i64.const 4
    i64.sub
    global.set 0
    local.get 0
    i32.const 1
    i32.add)
  (func (;3;) (type 0) (param i32) (result i32)
    (local i32 i64 i64)
    global.get 1
    i64.const 1
    i64.sub
    local.tee 2
    global.set 1
    global.get 0
    i64.const 1
    i64.sub
    local.tee 3
    global.set 0
    local.get 3
    local.get 2
    i64.or
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 1
    end
    block (result i32)  ;; label = @1
      loop  ;; label = @2
        global.get 0
        i64.const 12
        i64.sub
        local.tee 3
        global.set 0
        local.get 3
        i64.const 0
        i64.lt_s
        if  ;; label = @3
          call 1
        end
        local.get 1
        local.get 0
        call 2
        i32.add
        local.set 1
        local.get 0
        i32.const 1
        i32.sub
        local.tee 0
        br_if 0 (;@2;)
        global.get 0
        i64.const 3
        i64.sub
        global.set 0
      end
      local.get 1
      i32.eqz
      if  ;; label = @2
        global.get 0
        i64.const 2
        i64.sub
        global.set 0
        i32.const 7
        br 1 (;@1;)
      end
      global.get 0
      i64.const 2
      i64.sub
      global.set 0
      block  ;; label = @2
        local.get 0
        if  ;; label = @3
          global.get 0
          i64.const 1
          i64.sub
          global.set 0
          br 1 (;@2;)
        else
          global.get 0
          i64.const 5
          i64.sub
          global.set 0
          local.get 1
          call 0
          local.set 1
        end
        global.get 0
        i64.const 3
        i64.sub
        global.set 0
        local.get 0
        br_table 0 (;@2;) 0 (;@2;)
      end
      global.get 0
      i64.const 1
      i64.sub
      global.set 0
      local.get 1
    end
    global.get 1
    i64.const 1
    i64.add
    global.set 1)
  (func (;4;) (type 1) (result i32 i64)
    (local i64 i64)
    global.get 1
    i64.const 1
    i64.sub
    local.tee 0
    global.set 1
    global.get 0
    i64.const 6
    i64.sub
    local.tee 1
    global.set 0
    local.get 1
    local.get 0
    i64.or
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 1
    end
    block (result i32 i64)  ;; label = @1
      call 5
      i32.const 1
      i64.const 2
    end
    global.get 1
    i64.const 1
    i64.add
    global.set 1)
  (func (;5;) (type 2)
    global.get 0
    i64.const 1
    i64.sub
    global.set 0
    nop)
  (global (;0;) (mut i64) (i64.const 0))
  (global (;1;) (mut i64) (i64.const 0))
  (export "sum" (func 3))
  (export "pair" (func 4))
  (export "meter.gas" (global 0))
  (export "meter.depth" (global 1)))

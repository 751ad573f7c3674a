(module
  (type (;0;) (func))
  (type (;1;) (func (param i32) (result i32)))
  (type (;2;) (func))
  (type (;3;) (func (param i32) (result i32)))
  (type (;4;) (func (param funcref i32) (result i32)))
  (type (;5;) (func (param externref i32) (result i32)))
  (import "meter" "yield" (func (;0;) (type 2)))
  (func (;1;) (type 0)
    global.get 0
    i64.const 1
    i64.sub
    global.set 0)
  (func (;2;) (type 1) (param i32) (result i32)
    (local i64)
    global.get 0
    i64.const 246
    i64.sub
    local.tee 1
    global.set 0
    local.get 1
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    i32.const 0
    i32.const 0
    i32.const 5
    call 3
    memory.init 0
    data.drop 0
    i32.const 8
    i32.const 0
    local.get 0
    call 3
    memory.copy
    i32.const 8
    i32.const 0
    local.get 0
    call 3
    memory.fill
    i32.const 0
    i32.const 0
    i32.const 2
    call 4
    table.init 0
    i32.const 0
    i32.const 1
    i32.const 1
    call 4
    table.copy
    i32.const 0
    ref.func 1
    i32.const 1
    call 4
    table.fill 0
    ref.null func
    local.get 0
    call 5
    drop
    ref.null extern
    local.get 0
    call 6
    drop
    local.get 0
    call 7)
  (func (;3;) (type 3) (param i32) (result i32)
    global.get 0
    local.get 0
    i64.extend_i32_u
    i64.const 3
    i64.shr_u
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    local.get 0)
  (func (;4;) (type 3) (param i32) (result i32)
    global.get 0
    local.get 0
    i64.extend_i32_u
    i64.const 0
    i64.shr_u
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if  ;; label = @1
      call 0
    end
    local.get 0)
  (func (;5;) (type 4) (param funcref i32) (result i32)
    (local i32)
    local.get 0
    local.get 1
    table.grow 0
    local.tee 2
    i32.const -1
    i32.ne
    if  ;; label = @1
      global.get 0
      local.get 1
      i64.extend_i32_u
      i64.const 0
      i64.shl
      i64.sub
      global.set 0
      global.get 0
      i64.const 0
      i64.lt_s
      if  ;; label = @2
        call 0
      end
    end
    local.get 2)
  (func (;6;) (type 5) (param externref i32) (result i32)
    (local i32)
    local.get 0
    local.get 1
    table.grow 1
    local.tee 2
    i32.const -1
    i32.ne
    if  ;; label = @1
      global.get 0
      local.get 1
      i64.extend_i32_u
      i64.const 0
      i64.shl
      i64.sub
      global.set 0
      global.get 0
      i64.const 0
      i64.lt_s
      if  ;; label = @2
        call 0
      end
    end
    local.get 2)
  (func (;7;) (type 3) (param i32) (result i32)
    (local i32)
    local.get 0
    memory.grow
    local.tee 1
    i32.const -1
    i32.ne
    if  ;; label = @1
      global.get 0
      local.get 0
      i64.extend_i32_u
      i64.const 13
      i64.shl
      i64.sub
      global.set 0
      global.get 0
      i64.const 0
      i64.lt_s
      if  ;; label = @2
        call 0
      end
    end
    local.get 1)
  (table (;0;) 2 10 funcref)
  (table (;1;) 2 1048576 externref)
  (memory (;0;) 1 4)
  (global (;0;) (mut i64) (i64.const 0))
  (global (;1;) (mut i64) (i64.const 0))
  (export "all" (func 2))
  (export "meter.gas" (global 0))
  (export "meter.depth" (global 1))
  (elem (;0;) func 1 1)
  (data (;0;) "hello"))

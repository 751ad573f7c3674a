(module
  (type (;0;) (func))
  (type (;1;) (func (param i32) (result i32)))
  (type (;2;) (func))
  (type (;3;) (func (param i32) (result i32)))
  (type (;4;) (func (param i32 i32 i32)))
  (type (;5;) (func (param funcref i32) (result i32)))
  (type (;6;) (func (param externref i32) (result i32)))
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
    call 4
    i32.const 8
    i32.const 0
    local.get 0
    call 5
    i32.const 0
    i32.const 0
    i32.const 2
    call 6
    table.init 0
    i32.const 0
    i32.const 1
    i32.const 1
    call 6
    table.copy
    i32.const 0
    ref.func 1
    i32.const 1
    call 6
    table.fill 0
    ref.null func
    local.get 0
    call 7
    drop
    ref.null extern
    local.get 0
    call 8
    drop
    local.get 0
    call 9)
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
  (func (;4;) (type 4) (param i32 i32 i32)
    local.get 2
    i32.const 1048576
    i32.gt_u
    if  ;; label = @1
      local.get 0
      i64.extend_i32_u
      local.get 2
      i64.extend_i32_u
      i64.add
      memory.size
      i64.extend_i32_u
      i64.const 16
      i64.shl
      i64.le_u
      local.get 1
      i64.extend_i32_u
      local.get 2
      i64.extend_i32_u
      i64.add
      memory.size
      i64.extend_i32_u
      i64.const 16
      i64.shl
      i64.le_u
      i32.and
      if  ;; label = @2
        local.get 0
        local.get 1
        i32.le_u
        if  ;; label = @3
          loop  ;; label = @4
            global.get 0
            i64.const 131072
            i64.sub
            global.set 0
            global.get 0
            i64.const 0
            i64.lt_s
            if  ;; label = @5
              call 0
            end
            local.get 0
            local.get 1
            i32.const 1048576
            memory.copy
            local.get 0
            i32.const 1048576
            i32.add
            local.set 0
            local.get 1
            i32.const 1048576
            i32.add
            local.set 1
            local.get 2
            i32.const 1048576
            i32.sub
            local.set 2
            local.get 2
            i32.const 1048576
            i32.gt_u
            br_if 0 (;@4;)
          end
        else
          loop  ;; label = @4
            global.get 0
            i64.const 131072
            i64.sub
            global.set 0
            global.get 0
            i64.const 0
            i64.lt_s
            if  ;; label = @5
              call 0
            end
            local.get 2
            i32.const 1048576
            i32.sub
            local.set 2
            local.get 0
            local.get 2
            i32.add
            local.get 1
            local.get 2
            i32.add
            i32.const 1048576
            memory.copy
            local.get 2
            i32.const 1048576
            i32.gt_u
            br_if 0 (;@4;)
          end
        end
      end
    end
    global.get 0
    local.get 2
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
    local.get 0
    local.get 1
    local.get 2
    memory.copy)
  (func (;5;) (type 4) (param i32 i32 i32)
    local.get 2
    i32.const 1048576
    i32.gt_u
    if  ;; label = @1
      local.get 0
      i64.extend_i32_u
      local.get 2
      i64.extend_i32_u
      i64.add
      memory.size
      i64.extend_i32_u
      i64.const 16
      i64.shl
      i64.le_u
      if  ;; label = @2
        loop  ;; label = @3
          global.get 0
          i64.const 131072
          i64.sub
          global.set 0
          global.get 0
          i64.const 0
          i64.lt_s
          if  ;; label = @4
            call 0
          end
          local.get 0
          local.get 1
          i32.const 1048576
          memory.fill
          local.get 0
          i32.const 1048576
          i32.add
          local.set 0
          local.get 2
          i32.const 1048576
          i32.sub
          local.set 2
          local.get 2
          i32.const 1048576
          i32.gt_u
          br_if 0 (;@3;)
        end
      end
    end
    global.get 0
    local.get 2
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
    local.get 0
    local.get 1
    local.get 2
    memory.fill)
  (func (;6;) (type 3) (param i32) (result i32)
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
  (func (;7;) (type 5) (param funcref i32) (result i32)
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
  (func (;8;) (type 6) (param externref i32) (result i32)
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
  (func (;9;) (type 3) (param i32) (result i32)
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

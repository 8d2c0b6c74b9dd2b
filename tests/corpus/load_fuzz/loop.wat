(module (func (export "l") (loop (br 0))) (func $r (export "r") (call $r)))

//! Which instructions a module has that change state a snapshot does not hold.

use std::collections::{BTreeMap, BTreeSet};
use wasmparser::{FunctionBody, Operator, Result};

#[derive(Default)]
pub struct Census {
    /// By name, how often.
    pub table_writes: BTreeMap<&'static str, u32>,
    pub gc: BTreeMap<&'static str, u32>,
    pub stack_switches: u32,
    pub atomic_waits: u32,
    pub memory_inits: u32,
    pub dropped_data: BTreeSet<u32>,
    pub dropped_elements: BTreeSet<u32>,
}

impl Census {
    pub fn body(&mut self, body: &FunctionBody) -> Result<()> {
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            self.operator(&operators.read()?);
        }
        Ok(())
    }

    fn operator(&mut self, operator: &Operator) {
        use Operator::*;
        match operator {
            TableSet { .. } => self.table_write("table.set"),
            TableGrow { .. } => self.table_write("table.grow"),
            TableInit { .. } => self.table_write("table.init"),
            TableCopy { .. } => self.table_write("table.copy"),
            TableFill { .. } => self.table_write("table.fill"),
            TableAtomicSet { .. } | TableAtomicRmwXchg { .. } | TableAtomicRmwCmpxchg { .. } => {
                self.table_write("table.atomic");
            }
            ElemDrop { elem_index } => {
                self.dropped_elements.insert(*elem_index);
            }
            DataDrop { data_index } => {
                self.dropped_data.insert(*data_index);
            }
            MemoryInit { .. } => self.memory_inits += 1,
            StructNew { .. } | StructNewDefault { .. } | StructNewDesc { .. } | StructNewDefaultDesc { .. } => {
                self.gc("struct.new");
            }
            ArrayNew { .. } | ArrayNewDefault { .. } | ArrayNewFixed { .. } | ArrayNewData { .. }
            | ArrayNewElem { .. } => self.gc("array.new"),
            StructSet { .. } | StructAtomicSet { .. } | StructAtomicRmwAdd { .. } | StructAtomicRmwSub { .. }
            | StructAtomicRmwAnd { .. } | StructAtomicRmwOr { .. } | StructAtomicRmwXor { .. }
            | StructAtomicRmwXchg { .. } | StructAtomicRmwCmpxchg { .. } => self.gc("struct.set"),
            ArraySet { .. } | ArrayFill { .. } | ArrayCopy { .. } | ArrayInitData { .. } | ArrayInitElem { .. }
            | ArrayAtomicSet { .. } | ArrayAtomicRmwAdd { .. } | ArrayAtomicRmwSub { .. }
            | ArrayAtomicRmwAnd { .. } | ArrayAtomicRmwOr { .. } | ArrayAtomicRmwXor { .. }
            | ArrayAtomicRmwXchg { .. } | ArrayAtomicRmwCmpxchg { .. } => self.gc("array.set"),
            ContNew { .. } | ContBind { .. } | Suspend { .. } | Resume { .. } | ResumeThrow { .. }
            | ResumeThrowRef { .. } | Switch { .. } => self.stack_switches += 1,
            MemoryAtomicWait32 { .. } | MemoryAtomicWait64 { .. } => self.atomic_waits += 1,
            _ => {}
        }
    }

    fn table_write(&mut self, name: &'static str) {
        *self.table_writes.entry(name).or_default() += 1;
    }

    fn gc(&mut self, name: &'static str) {
        *self.gc.entry(name).or_default() += 1;
    }
}

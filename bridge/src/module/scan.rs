//! One pass over a module: its sections as they are, and what the rewriting and the report need to know.

use super::census::Census;
use wasmparser::{
    CompositeInnerType, Data, DataKind, ElementKind, Export, FuncType, GlobalType, MemoryType, Parser, Payload,
    Result, TypeRef,
};

pub struct Section<'a> {
    pub id: u8,
    pub payload: &'a [u8],
}

pub struct FunctionImport<'a> {
    pub module: &'a str,
    pub name: &'a str,
    pub type_index: u32,
}

/// Something of the module's state that lives outside of it.
pub struct StateImport<'a> {
    pub what: &'static str,
    pub module: &'a str,
    pub name: &'a str,
}

pub struct Global {
    pub ty: GlobalType,
    pub imported: bool,
}

pub struct Memory {
    pub ty: MemoryType,
    pub imported: bool,
}

pub struct Segment<'a> {
    pub data: &'a [u8],
    pub active: Option<Active<'a>>,
}

pub struct Active<'a> {
    pub memory: u32,
    /// The instructions that compute the offset, without the final `end`.
    pub offset: &'a [u8],
}

#[derive(Default)]
pub struct Scan<'a> {
    pub sections: Vec<Section<'a>>,
    /// None: not a function type.
    pub types: Vec<Option<FuncType>>,
    pub function_imports: Vec<FunctionImport<'a>>,
    pub state_imports: Vec<StateImport<'a>>,
    /// The type of each function, imported ones first.
    pub functions: Vec<u32>,
    pub globals: Vec<Global>,
    pub memories: Vec<Memory>,
    pub tables: u32,
    pub exports: Vec<Export<'a>>,
    pub segments: Vec<Segment<'a>>,
    /// Element segments by index: is it passive?
    pub passive_elements: Vec<bool>,
    pub start: Option<u32>,
    pub census: Census,
}

impl<'a> Scan<'a> {
    /// The module has been validated.
    pub fn of(wasm: &'a [u8]) -> Result<Self> {
        let mut scan = Scan::default();
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            if let Some((id, range)) = payload.as_section() {
                scan.sections.push(Section { id, payload: &wasm[range] });
            }
            scan.payload(payload)?;
        }
        Ok(scan)
    }

    fn payload(&mut self, payload: Payload<'a>) -> Result<()> {
        match payload {
            Payload::TypeSection(groups) => {
                for group in groups {
                    for ty in group?.into_types() {
                        self.types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(f) => Some(f),
                            _ => None,
                        });
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    self.import(import.module, import.name, import.ty);
                }
            }
            Payload::FunctionSection(functions) => {
                for type_index in functions {
                    self.functions.push(type_index?);
                }
            }
            Payload::TableSection(tables) => self.tables += tables.count(),
            Payload::MemorySection(memories) => {
                for ty in memories {
                    self.memories.push(Memory { ty: ty?, imported: false });
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.globals.push(Global { ty: global?.ty, imported: false });
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    self.exports.push(export?);
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(elements) => {
                for element in elements {
                    self.passive_elements.push(matches!(element?.kind, ElementKind::Passive));
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    self.segments.push(Segment::of(segment?)?);
                }
            }
            Payload::CodeSectionEntry(body) => self.census.body(&body)?,
            _ => {}
        }
        Ok(())
    }

    fn import(&mut self, module: &'a str, name: &'a str, ty: TypeRef) {
        let what = match ty {
            TypeRef::Func(type_index) | TypeRef::FuncExact(type_index) => {
                self.functions.push(type_index);
                self.function_imports.push(FunctionImport { module, name, type_index });
                return;
            }
            TypeRef::Global(ty) => {
                self.globals.push(Global { ty, imported: true });
                if !ty.mutable {
                    return;
                }
                "mutable global"
            }
            TypeRef::Memory(ty) => {
                self.memories.push(Memory { ty, imported: true });
                "memory"
            }
            TypeRef::Table(_) => {
                self.tables += 1;
                "table"
            }
            TypeRef::Tag(_) => return,
        };
        self.state_imports.push(StateImport { what, module, name });
    }

    /// The mutable globals that the module owns, with their indices.
    pub fn state_globals(&self) -> impl Iterator<Item = (u32, &GlobalType)> {
        let indexed = self.globals.iter().enumerate();
        indexed.filter(|(_, g)| g.ty.mutable && !g.imported).map(|(i, g)| (i as u32, &g.ty))
    }

    /// The active data segments, with their indices.
    pub fn active_segments(&self) -> impl Iterator<Item = (u32, &Active<'a>, &'a [u8])> {
        let indexed = self.segments.iter().enumerate();
        indexed.filter_map(|(i, s)| s.active.as_ref().map(|a| (i as u32, a, s.data)))
    }
}

impl<'a> Segment<'a> {
    fn of(segment: Data<'a>) -> Result<Self> {
        let active = match segment.kind {
            DataKind::Passive => None,
            DataKind::Active { memory_index, offset_expr } => {
                let mut reader = offset_expr.get_binary_reader();
                let expression = reader.read_bytes(reader.bytes_remaining())?;
                // The last byte is the `end` that every valid expression has.
                let offset = expression.split_last().map_or(expression, |(_, instructions)| instructions);
                Some(Active { memory: memory_index, offset })
            }
        };
        Ok(Segment { data: segment.data, active })
    }
}

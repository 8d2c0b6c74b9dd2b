# dw_embed(TARGET NAME FILE): FILE's bytes become `extern "C" const unsigned char dw_NAME_begin[], dw_NAME_end[]`.
enable_language(ASM)
function(dw_embed target name file)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embed_${name}.S)
  file(WRITE ${source}.new
"    .section .rodata
    .global dw_${name}_begin
    .global dw_${name}_end
    .balign 16
dw_${name}_begin:
    .incbin \"${file}\"
dw_${name}_end:
    .byte 0
    .section .note.GNU-stack,\"\",%progbits
")
  configure_file(${source}.new ${source} COPYONLY)
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${source})
endfunction()

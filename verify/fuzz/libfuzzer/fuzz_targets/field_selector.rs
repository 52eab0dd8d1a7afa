//! The target `field_selector` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kube_informer_fuzz::run("field_selector", data));

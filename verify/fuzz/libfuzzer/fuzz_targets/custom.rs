//! libFuzzer entry point of the fuzz target `custom`: passes each input to `kube_informer_fuzz::run`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kube_informer_fuzz::run("custom", data));

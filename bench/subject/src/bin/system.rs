//! `subject-system`: the benchmark program `subject`, with the C library's allocator instead of jemalloc.

fn main() -> anyhow::Result<()> {
    subject::run()
}

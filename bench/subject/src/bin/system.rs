//! `subject-system`: the `subject` program with the C library's allocator instead of jemalloc.

fn main() -> anyhow::Result<()> {
    subject::run()
}

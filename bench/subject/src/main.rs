//! `subject` with jemalloc, an allocator for multi-threaded programs; Go's runtime includes one.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    subject::run()
}

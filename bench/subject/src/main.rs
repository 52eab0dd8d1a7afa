//! `subject`: the benchmark program that runs and measures this project's informer, with jemalloc as
//! allocator.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    subject::run()
}

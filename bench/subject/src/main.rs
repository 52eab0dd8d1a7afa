//! `subject`: the measured program, with the allocator jemalloc.
//!
//! jemalloc is made for multi-threaded programs, as is the allocator in Go's runtime.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    subject::run()
}

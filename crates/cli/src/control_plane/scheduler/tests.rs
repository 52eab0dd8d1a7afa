//! The scheduler

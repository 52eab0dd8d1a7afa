//! Tests that compressed objects decompress to the original bytes before and after each training of a
//! dictionary. Also tests when a training is due, and which objects are sampled.

use super::*;

/// Returns the JSON of an object; objects of the same `kind` share most of their text.
fn json(kind: u64, number: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(kind);
    let word = |rng: &mut fastrand::Rng| -> String { (0..8).map(|_| rng.alphanumeric()).collect() };
    let list: Vec<String> = (0..40)
        .map(|_| format!(r#""{}":"{}""#, word(&mut rng), word(&mut rng)))
        .collect();
    format!(r#"{{"metadata":{{"name":"{number}"}},{}}}"#, list.join(","))
}

fn trained(kind: u64) -> Packing {
    let packing = Packing::new(SAMPLES);
    for number in 0..SAMPLES {
        assert!(!packing.is_due(false));
        assert!(!packing.pack(json(kind, number).as_bytes()).is_compressed());
    }
    assert!(packing.is_due(false));
    assert!(packing.train(false));
    packing
}

#[test]
fn packed_objects_are_unpacked_unchanged_before_and_after_training() {
    let packing = Packing::new(SAMPLES);
    let before = packing.pack(b"{}");
    assert_eq!(before.unpacked(<[u8]>::to_vec).unwrap(), b"{}");
    let packing = trained(1);
    let like_others = json(1, 7);
    let odd: [&[u8]; 5] = [b"", b"{}", b"\x00\xff", like_others.as_bytes(), &[7; 5000]];
    for bytes in odd {
        assert_eq!(packing.pack(bytes).unpacked(<[u8]>::to_vec).unwrap(), bytes);
    }
}

#[test]
fn with_a_dictionary_a_single_object_is_small() {
    let packing = trained(1);
    let text = json(1, 4711);
    let packed = packing.pack(text.as_bytes());
    assert!(packed.is_compressed());
    assert!(
        packed.size() * 10 < text.len(),
        "{} of {}",
        packed.size(),
        text.len()
    );
}

#[test]
fn objects_with_nothing_in_common_stay_uncompressed() {
    let packing = trained(1);
    let mut rng = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..1000).map(|_| rng.u8(..)).collect();
    let packed = packing.pack(&noise);
    assert!(!packed.is_compressed());
    assert_eq!(packed.unpacked(<[u8]>::to_vec).unwrap(), noise);
}

#[test]
fn older_objects_are_repacked_once() {
    let packing = Packing::new(SAMPLES);
    let mut early = packing.pack(json(1, 0).as_bytes());
    assert!(!packing.repack(&mut early), "there is no dictionary");
    for number in 1..SAMPLES {
        packing.pack(json(1, number).as_bytes());
    }
    assert!(packing.train(false));
    assert!(packing.repack(&mut early) && early.is_compressed());
    assert!(!packing.repack(&mut early));
    assert_eq!(
        early.unpacked(<[u8]>::to_vec).unwrap(),
        json(1, 0).as_bytes()
    );
}

#[test]
fn a_dictionary_is_replaced_when_objects_change_and_at_most_two_exist() {
    let packing = trained(1);
    let mut kept = Vec::new();
    let mut keep = |packing: &Packing, kind: u64, count: usize| {
        for number in 0..count {
            kept.push(packing.pack(json(kind, number).as_bytes()));
        }
    };
    keep(&packing, 1, 10_000);
    assert!(!packing.is_due(false), "the objects have not changed");
    keep(&packing, 2, 1000 + SAMPLES);
    assert!(packing.train(false));
    keep(&packing, 2, 8000);
    keep(&packing, 3, 1000 + SAMPLES);
    assert!(!packing.is_due(false), "two dictionaries are in use");
    for packed in &mut kept {
        packing.repack(packed);
    }
    assert!(packing.is_due(false));
}

#[test]
fn samples_without_a_dictionary_are_retried_after_growing_pauses() {
    let packing = Packing::new(SAMPLES);
    let mut tried = Vec::new();
    for at in 0..10 * SAMPLES {
        packing.pack(b"");
        if packing.is_due(false) {
            assert!(!packing.train(false));
            tried.push((at + 1) / SAMPLES);
        }
    }
    assert_eq!(tried, [1, 4, 9]);
}

#[test]
fn large_objects_stay_unpacked_up_to_8_mib_for_any_dictionary_size() {
    let packing = Packing::new(usize::MAX);
    let large = vec![b'x'; 200_000];
    for number in 0..64 {
        assert!(!packing.is_due(false), "{number}");
        packing.pack(&large);
    }
    assert!(packing.is_due(false), "enough objects for the training");
    packing.pack(&large);
    let learning = packing.learning.lock();
    let samples = learning.samples.as_ref().unwrap();
    assert_eq!(samples.bytes().len(), 64 * 32 * 1024);
}

/// Compresses the numbers 0, 1, 2, … until a training is due, and returns the sampled numbers.
///
/// The training must be due after `objects` objects, or after four times as many if `more_comes` is true.
/// `more_comes` simulates a list in progress, of which more objects will follow.
fn taken(objects: usize, more_comes: bool) -> Vec<usize> {
    let packing = Packing::new(objects);
    let seen = (0..objects * 8).find(|number| {
        packing.pack(&number.to_be_bytes());
        packing.learning.lock().is_due(objects, more_comes)
    });
    assert_eq!(seen.unwrap() + 1, objects * if more_comes { 4 } else { 1 });
    if more_comes {
        packing.pack(b"no more are taken");
    }
    let learning = packing.learning.lock();
    let samples = learning.samples.as_ref().unwrap();
    assert_eq!(samples.lengths(), vec![8; samples.lengths().len()]);
    let numbers = samples.bytes().chunks(8);
    numbers
        .map(|it| usize::from_be_bytes(it.try_into().unwrap()))
        .collect()
}

#[test]
fn samples_are_spread_over_all_objects_or_four_times_the_number_if_more_follow() {
    let every = |stride: usize, end: usize| (0..end).step_by(stride).collect::<Vec<_>>();
    assert_eq!(taken(10, false), every(1, 10));
    assert_eq!(taken(10, true), every(1, 40));
    assert_eq!(taken(256, false), every(4, 256));
    assert_eq!(taken(256, true), every(16, 1024));
}

#[test]
fn with_more_to_come_at_most_8_mib_stay_unpacked() {
    let packing = Packing::new(16);
    let large = vec![b'x'; 300_000];
    let waits = (0..64).take_while(|_| {
        packing.pack(&large);
        !packing.learning.lock().is_due(16, true)
    });
    assert_eq!(waits.count() + 1, 28);
}

#[test]
fn of_two_concurrent_trainings_one_runs() {
    let packing = trained(1);
    for number in 0..10_000 {
        packing.pack(json(1, number).as_bytes());
    }
    for number in 0..1000 + SAMPLES {
        packing.pack(json(2, number).as_bytes());
    }
    let trained = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(|| packing.train(false)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(trained.iter().filter(|it| **it).count(), 1);
    assert_eq!(
        (packing.generation(), packing.learning.lock().failures),
        (2, 0)
    );
}

#[test]
fn damaged_bytes_are_an_error() {
    let packing = trained(1);
    let mut packed = packing.pack(json(1, 1).as_bytes());
    packed.bytes[6] ^= 0xff;
    let unpacked = packed.unpacked(<[u8]>::to_vec);
    assert_ne!(unpacked.ok(), Some(json(1, 1).into_bytes()));
    packed.bytes = Box::default();
    assert!(packed.unpacked(|_| ()).is_err());
}

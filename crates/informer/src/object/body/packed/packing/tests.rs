//! Tests that compressed objects decompress to the original bytes before and after each change of the
//! compression dictionary. Also tests when a new dictionary is due, which objects become samples of a
//! dictionary, and which objects become bases, with which other objects are compressed.

use super::*;

/// Packs an object that has its own label set.
fn pack(packing: &Packing, object: &[u8]) -> Packed {
    packing.pack(
        object,
        Kin {
            uid: UidHash::of("u"),
            base: &BaseOfLabels::default(),
        },
    )
}

fn repack(packing: &Packing, packed: &mut Packed) -> bool {
    packing.repack(
        packed,
        Kin {
            uid: UidHash::of("u"),
            base: &BaseOfLabels::default(),
        },
    )
}

/// Returns the JSON of an object; objects of the same `kind` share most of their text.
fn json(kind: u64, number: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(kind);
    let word = |rng: &mut fastrand::Rng| -> String { (0..8).map(|_| rng.digit(16)).collect() };
    let list: Vec<String> = (0..40)
        .map(|_| format!(r#""{}":"{}""#, word(&mut rng), word(&mut rng)))
        .collect();
    format!(r#"{{"metadata":{{"name":"{number}"}},{}}}"#, list.join(","))
}

fn with_dictionary(kind: u64) -> Packing {
    let packing = Packing::new(SAMPLES);
    for number in 0..SAMPLES {
        assert!(!packing.is_due(false));
        assert!(!pack(&packing, json(kind, number).as_bytes()).is_compressed());
    }
    assert!(packing.is_due(false));
    assert!(packing.renew(false));
    packing
}

#[test]
fn packed_objects_are_unpacked_unchanged_before_and_after_training() {
    let packing = Packing::new(SAMPLES);
    let before = pack(&packing, b"{}");
    assert_eq!(before.unpacked(<[u8]>::to_vec).unwrap(), b"{}");
    let packing = with_dictionary(1);
    let like_others = json(1, 7);
    let odd: [&[u8]; 5] = [b"", b"{}", b"\x00\xff", like_others.as_bytes(), &[7; 5000]];
    for bytes in odd {
        assert_eq!(
            pack(&packing, bytes).unpacked(<[u8]>::to_vec).unwrap(),
            bytes
        );
    }
}

#[test]
fn with_a_dictionary_a_single_object_is_small() {
    let packing = with_dictionary(1);
    let text = json(1, 4711);
    let packed = pack(&packing, text.as_bytes());
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
    let packing = with_dictionary(1);
    let mut rng = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = (0..1000).map(|_| rng.u8(..)).collect();
    let packed = pack(&packing, &noise);
    assert!(!packed.is_compressed());
    assert_eq!(packed.unpacked(<[u8]>::to_vec).unwrap(), noise);
}

#[test]
fn older_objects_are_repacked_once() {
    let packing = Packing::new(SAMPLES);
    let mut early = pack(&packing, json(1, 0).as_bytes());
    assert!(!repack(&packing, &mut early), "there is no dictionary");
    for number in 1..SAMPLES {
        pack(&packing, json(1, number).as_bytes());
    }
    assert!(packing.renew(false));
    assert!(repack(&packing, &mut early) && early.is_compressed());
    assert!(!repack(&packing, &mut early));
    assert_eq!(
        early.unpacked(<[u8]>::to_vec).unwrap(),
        json(1, 0).as_bytes()
    );
}

#[test]
fn a_dictionary_is_replaced_when_objects_change_and_at_most_two_exist() {
    let packing = with_dictionary(1);
    let mut kept = Vec::new();
    let mut keep = |packing: &Packing, kind: u64, count: usize| {
        for number in 0..count {
            kept.push(pack(packing, json(kind, number).as_bytes()));
        }
    };
    keep(&packing, 1, 10_000);
    assert!(!packing.is_due(false), "the objects have not changed");
    keep(&packing, 2, 1000 + SAMPLES);
    assert!(packing.renew(false));
    keep(&packing, 2, 8000);
    keep(&packing, 3, 1000 + SAMPLES);
    assert!(!packing.is_due(false), "two dictionaries are in use");
    for packed in &mut kept {
        repack(&packing, packed);
    }
    assert!(packing.is_due(false));
}

#[test]
fn large_objects_stay_unpacked_up_to_8_mib_for_any_dictionary_size() {
    let packing = Packing::new(usize::MAX);
    let large = vec![b'x'; 200_000];
    for number in 0..64 {
        assert!(!packing.is_due(false), "{number}");
        pack(&packing, &large);
    }
    assert!(packing.is_due(false), "enough objects for a dictionary");
    pack(&packing, &large);
    let learning = packing.learning.lock();
    let samples = learning.samples.as_ref().unwrap();
    assert_eq!(samples.bytes().len(), 32 * 1024);
}

/// Compresses numbered objects of 1 KiB until a dictionary is due. Returns the numbers of the sampled
/// objects.
///
/// Fails unless the dictionary is due after exactly `objects` objects. If `more_comes` is true, the test
/// simulates a list in progress, and the expected number is four times as high.
fn taken(objects: usize, more_comes: bool) -> Vec<usize> {
    const LENGTH: usize = 1024;
    let packing = Packing::new(objects);
    let object = |number: usize| [&number.to_be_bytes()[..], &[0; LENGTH - 8]].concat();
    let seen = (0..objects * 8).find(|number| {
        pack(&packing, &object(*number));
        packing.learning.lock().is_due(objects, more_comes)
    });
    assert_eq!(seen.unwrap() + 1, objects * if more_comes { 4 } else { 1 });
    if more_comes {
        pack(&packing, b"no more are taken");
    }
    let learning = packing.learning.lock();
    let samples = learning.samples.as_ref().unwrap();
    assert_eq!(samples.lengths(), vec![LENGTH; samples.lengths().len()]);
    let numbers = samples.bytes().chunks(LENGTH);
    numbers
        .map(|it| usize::from_be_bytes(it[..8].try_into().unwrap()))
        .collect()
}

#[test]
fn samples_are_spread_over_all_objects_or_four_times_the_number_if_more_follow() {
    let every = |stride: usize, end: usize| (0..end).step_by(stride).collect::<Vec<_>>();
    assert_eq!(taken(10, false), every(1, 10));
    assert_eq!(taken(10, true), every(1, 40));
    assert_eq!(taken(256, false), every(8, 256));
    assert_eq!(taken(256, true), every(32, 1024));
}

#[test]
fn with_more_to_come_at_most_8_mib_stay_unpacked() {
    let packing = Packing::new(16);
    let large = vec![b'x'; 300_000];
    let waits = (0..64).take_while(|_| {
        pack(&packing, &large);
        !packing.learning.lock().is_due(16, true)
    });
    assert_eq!(waits.count() + 1, 28);
}

#[test]
fn of_concurrent_renewals_one_makes_a_dictionary() {
    let packing = with_dictionary(1);
    for number in 0..10_000 {
        pack(&packing, json(1, number).as_bytes());
    }
    for number in 0..1000 + SAMPLES {
        pack(&packing, json(2, number).as_bytes());
    }
    let made = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(|| packing.renew(false)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(made.iter().filter(|it| **it).count(), 1);
    assert_eq!(packing.generation(), 2);
}

fn bytes_of(packed: &mut Packed) -> &mut Box<[u8]> {
    match packed {
        Packed::Uncompressed(bytes)
        | Packed::Alone { bytes, .. }
        | Packed::WithBase { bytes, .. } => bytes,
        Packed::Base(_) => panic!("a base is shared"),
    }
}

#[test]
fn damaged_bytes_are_an_error() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let kept = [family.pack(1, &json(1, 1)), family.pack(2, &json(1, 2))];
    let long = vec![b'x'; 40_000];
    for (mut packed, sent) in [
        (pack_alone(&packing, &long), long),
        (kept[1].clone(), json(1, 2).into_bytes()),
    ] {
        for at in 0..bytes_of(&mut packed).len() {
            let mut damaged = packed.clone();
            bytes_of(&mut damaged)[at] ^= 0xff;
            let unpacked = damaged.unpacked(<[u8]>::to_vec);
            assert!(unpacked.is_err() || unpacked.is_ok_and(|found| found.len() == sent.len()));
        }
        assert_eq!(packed.unpacked(<[u8]>::to_vec).unwrap(), sent);
        *bytes_of(&mut packed) = Box::default();
        assert!(packed.unpacked(|_| ()).is_err());
    }
}

/// Packs an object that is too long for a base.
fn pack_alone(packing: &Packing, object: &[u8]) -> Packed {
    let packed = pack(packing, object);
    assert!(matches!(packed, Packed::Alone { .. }));
    packed
}

/// Test helper that packs objects with equal labels, and checks that they are unchanged after unpacking.
struct Family<'a> {
    packing: &'a Packing,
    labels: &'a BaseOfLabels,
}

impl<'a> Family<'a> {
    fn new(packing: &'a Packing, labels: &'a BaseOfLabels) -> Self {
        Self { packing, labels }
    }

    fn pack_alike(&mut self, uids: std::ops::Range<usize>) -> Vec<Packed> {
        uids.map(|uid| self.pack(uid, &alike(1, uid))).collect()
    }

    fn kin(&self, uid: usize) -> Kin<'a> {
        Kin {
            uid: UidHash::of(&uid.to_string()),
            base: self.labels,
        }
    }

    fn pack(&mut self, uid: usize, object: &str) -> Packed {
        let packed = self.packing.pack(object.as_bytes(), self.kin(uid));
        let unpacked = packed.unpacked(<[u8]>::to_vec).unwrap();
        assert_eq!(String::from_utf8(unpacked).unwrap(), object);
        packed
    }
}

/// Returns an object with the name `number` and a random text.
///
/// All objects of one `family` have the same text. No dictionary contains this text.
fn alike(family: u64, number: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(1000 + family);
    let text: String = (0..600).map(|_| rng.digit(16)).collect();
    format!(r#"{{"name":"{number}","text":"{text}"}}"#)
}

#[test]
fn objects_with_equal_labels_are_compressed_with_the_first_of_them() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let kept = family.pack_alike(0..50);
    let Packed::Base(first) = &kept[0] else {
        panic!("the first is the base");
    };
    assert!(first.size() > 200, "{}", first.size());
    for packed in &kept[1..] {
        assert!(matches!(packed, Packed::WithBase { base, .. } if Arc::ptr_eq(base, first)));
        assert!(packed.size() < 40, "{}", packed.size());
    }
    // In any order, each is unpacked unchanged.
    for number in [0, 49, 7, 7, 30, 0, 1] {
        let unpacked = kept[number].unpacked(<[u8]>::to_vec).unwrap();
        assert_eq!(unpacked, alike(1, number).into_bytes());
    }
    // A later state of the base itself is compressed with the earlier one, which the others need.
    let later = family.pack(0, &alike(1, 4711));
    assert!(matches!(later, Packed::WithBase { .. }));
}

#[test]
fn objects_like_a_sample_of_the_dictionary_have_a_base_too() {
    let packing = Packing::new(SAMPLES);
    for number in 0..SAMPLES {
        pack(&packing, alike(1, number).as_bytes());
    }
    assert!(packing.renew(false));
    let labels = BaseOfLabels::default();
    let kept = Family::new(&packing, &labels).pack_alike(0..50);
    assert!(matches!(&kept[0], Packed::Base(base) if base.size() < 40));
    let has_base = |packed: &Packed| matches!(packed, Packed::WithBase { .. });
    assert!(kept[1..].iter().all(has_base));
}

#[test]
fn of_an_object_without_others_only_the_last_state_is_stored() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let mut kept = family.pack(1, &alike(1, 0));
    for number in 1..5 {
        let next = family.pack(1, &alike(1, number));
        assert!(matches!(next, Packed::Base(_)));
        kept = next;
    }
    let Packed::Base(base) = &kept else { panic!() };
    let base = Arc::downgrade(base);
    drop(kept);
    assert!(base.upgrade().is_none(), "its labels do not hold the base");
}

#[test]
fn a_base_that_the_others_have_left_behind_is_replaced() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let mut kept = family.pack_alike(0..3);
    let begun = kept.len();
    kept.extend((3..20).map(|number| family.pack(number, &alike(2, number))));
    let small = |packed: &Packed| packed.size() < 40;
    let first_small = kept[begun..].iter().position(small);
    assert_eq!(first_small, Some(delta_base::MISSES.into()));
    assert!(
        kept[begun + usize::from(delta_base::MISSES)..]
            .iter()
            .all(small)
    );
}

#[test]
fn objects_that_have_only_their_labels_in_common_are_soon_compressed_alone() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let kept: Vec<_> = (0..30)
        .map(|number| family.pack(number, &alike(number as u64, number)))
        .collect();
    let bases = kept
        .iter()
        .filter(|packed| matches!(packed, Packed::Base(_)));
    assert_eq!(bases.count(), 3);
    let way = labels.way(UidHash::of("other"), 600, kept[0].dictionary().unwrap());
    assert!(matches!(way, Way::Alone));
    let alone = pack(&packing, alike(7, 7).as_bytes());
    assert!(kept.iter().all(|packed| packed.size() < alone.size() + 20));
}

#[test]
fn an_object_of_more_than_32_kib_has_no_base() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let mut rng = fastrand::Rng::with_seed(1);
    for length in [32 * 1024, 32 * 1024 + 1] {
        let long: String = (0..length).map(|_| rng.digit(16)).collect();
        let kept = [1, 2].map(|uid| family.pack(uid, &long));
        let is_with_base = matches!(kept[1], Packed::WithBase { .. });
        assert_eq!(is_with_base, length == 32 * 1024, "{length}");
    }
}

#[test]
fn a_new_dictionary_has_new_bases() {
    let packing = with_dictionary(1);
    let labels = BaseOfLabels::default();
    let mut family = Family::new(&packing, &labels);
    let mut kept = family.pack_alike(0..3);
    packing.learning.lock().samples = Some(Samples::default());
    for number in 0..SAMPLES {
        pack(&packing, json(2, number).as_bytes());
    }
    assert!(packing.renew(false));
    assert!(packing.learning.lock().previous.strong_count() > 0);
    for (number, packed) in kept.iter_mut().enumerate() {
        assert!(packing.repack(packed, family.kin(number)));
        assert!(!packing.repack(packed, family.kin(number)));
        let unpacked = packed.unpacked(<[u8]>::to_vec).unwrap();
        assert_eq!(unpacked, alike(1, number).into_bytes());
    }
    assert!(matches!(kept[0], Packed::Base(_)));
    assert!(kept[1..].iter().all(|packed| packed.size() < 40));
    assert_eq!(packing.learning.lock().previous.strong_count(), 0);
}

#[test]
fn concurrent_threads_read_their_own_objects() {
    let packing = with_dictionary(1);
    let labels = [(); 5].map(|()| BaseOfLabels::default());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (packing, labels) = (&packing, &labels);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread);
                for number in 0..500 {
                    let family = rng.usize(..labels.len());
                    let object = alike(family as u64, number);
                    Family::new(packing, &labels[family]).pack(number, &object);
                }
            });
        }
    });
}

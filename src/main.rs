fn main() {
    for p in slotted::package::committed() {
        let d = std::path::Path::new("generated").join(p.folder());
        std::fs::create_dir_all(&d).unwrap();
        for f in slotted::render::files(&p) { std::fs::write(d.join(f.name), f.text).unwrap(); }
    }
}

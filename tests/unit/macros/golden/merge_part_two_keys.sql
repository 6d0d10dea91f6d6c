merge into `shop`.`orders` as DBT_INTERNAL_DEST
  using (
    select touched.`id` as k0, touched.`it's ``odd``` as k1, struct(part.*) as part
    from (select distinct `id`, `it's ``odd``` from `shop`.`new_rows`) as touched
    left join `shop`.`orders__next` as part on touched.`id` = part.`id` and touched.`it's ``odd``` = part.`it's ``odd```
  ) as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_DEST.`id` = DBT_INTERNAL_SOURCE.k0 and DBT_INTERNAL_DEST.`it's ``odd``` = DBT_INTERNAL_SOURCE.k1 and (DBT_INTERNAL_DEST.`id` between -5 and 7 or DBT_INTERNAL_DEST.`id` is null) and (DBT_INTERNAL_DEST.`it's ``odd``` between date '2026-01-01' and date '2026-01-31' or DBT_INTERNAL_DEST.`it's ``odd``` is null)
  when matched and DBT_INTERNAL_SOURCE.part.`id` is null then delete
  when matched then update set DBT_INTERNAL_DEST.`id` = DBT_INTERNAL_SOURCE.part.`id`, DBT_INTERNAL_DEST.`it's ``odd``` = DBT_INTERNAL_SOURCE.part.`it's ``odd```, DBT_INTERNAL_DEST.`status` = DBT_INTERNAL_SOURCE.part.`status`
  when not matched and DBT_INTERNAL_SOURCE.part.`id` is not null then insert (`id`, `it's ``odd```, `status`)
    values (DBT_INTERNAL_SOURCE.part.`id`, DBT_INTERNAL_SOURCE.part.`it's ``odd```, DBT_INTERNAL_SOURCE.part.`status`)

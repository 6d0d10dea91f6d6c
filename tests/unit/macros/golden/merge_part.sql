merge into `shop`.`orders` as DBT_INTERNAL_DEST
  using (
    select touched.`id` as k0, struct(part.*) as part
    from (select distinct `id` from `shop`.`new_rows`) as touched
    left join `shop`.`orders__next` as part on touched.`id` = part.`id`
  ) as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_DEST.`id` = DBT_INTERNAL_SOURCE.k0
  when matched and DBT_INTERNAL_SOURCE.part.`id` is null then delete
  when matched then update set DBT_INTERNAL_DEST.`id` = DBT_INTERNAL_SOURCE.part.`id`, DBT_INTERNAL_DEST.`status` = DBT_INTERNAL_SOURCE.part.`status`
  when not matched and DBT_INTERNAL_SOURCE.part.`id` is not null then insert (`id`, `status`)
    values (DBT_INTERNAL_SOURCE.part.`id`, DBT_INTERNAL_SOURCE.part.`status`)

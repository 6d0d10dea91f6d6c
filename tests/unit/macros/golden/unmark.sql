alter table `shop`.`orders__next` unset tblproperties if exists ('openmirroring.held', 'it\'s')
